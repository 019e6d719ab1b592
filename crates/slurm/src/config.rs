//! The site's configuration, as `scontrol show config` prints it.

use crate::gatherer::Gatherer;
use crate::meaning::Gathering;

/// Lines `NAME = VALUE`.
pub struct Config(String);

impl Config {
    /// Of what scontrol printed.
    pub fn of(text: impl Into<String>) -> Config {
        Config(text.into())
    }

    /// The value of a setting, such as `TaskPlugin`.
    pub fn value(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    }

    /// What it says of who gathers the figures.
    pub fn gathering(&self) -> Gathering {
        let value = |key: &str| self.value(key).unwrap_or_default().to_ascii_lowercase();
        let gatherer = match (value("JobAcctGatherType").as_str(), value("CgroupPlugin").as_str()) {
            ("jobacct_gather/linux", _) => Some(Gatherer::Linux),
            ("jobacct_gather/cgroup", "cgroup/v1") => Some(Gatherer::CgroupV1),
            ("jobacct_gather/cgroup", "cgroup/v2") => Some(Gatherer::CgroupV2),
            ("jobacct_gather/cgroup", _) => Some(Gatherer::Cgroup),
            _ => None,
        };
        let frequency = value("JobAcctGatherFrequency");
        let of_tasks = frequency.split(',').find_map(|part| match part.trim().split_once('=') {
            None => part.split_whitespace().next()?.parse().ok(),
            Some(("task", seconds)) => seconds.parse().ok(),
            Some(_) => None,
        });
        Gathering { gatherer, version: None, params: value("JobAcctGatherParams"), interval_seconds: of_tasks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sites_configuration_says_who_gathers_the_figures() {
        let of = |text: &str| Config::of(text).gathering();
        let config = "JobAcctGatherFrequency  = task=20,network=60\nJobAcctGatherType       = jobacct_gather/cgroup\n\
                      JobAcctGatherParams     = no_file_cache\nCgroupPlugin            = cgroup/v2\n";
        assert_eq!(
            of(config),
            Gathering {
                gatherer: Some(Gatherer::CgroupV2),
                version: None,
                params: "no_file_cache".into(),
                interval_seconds: Some(20),
            }
        );
        assert_eq!(of("JobAcctGatherFrequency = 30\n").interval_seconds, Some(30));
        assert_eq!(of(&config.replace("cgroup/v2", "autodetect")).gatherer, Some(Gatherer::Cgroup));
        assert_eq!(of("JobAcctGatherType = jobacct_gather/none\n").gatherer, None);
    }
}
