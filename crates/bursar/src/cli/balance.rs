//! The command line of `bursar balance`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use controller::Asked;
use model::Bytes;

use super::ADVANCED;
use super::values::duration;

/// `bursar balance`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar balance --total 8G cgroup:/sys/fs/cgroup/db /sys/fs/cgroup/batch\n  \
    bursar balance --total 4G 4711,min=512M 4712,max=2G,weight=3\n  \
    bursar balance --total 8G --dry-run name:db.service name:web,weight=2\n  \
    bursar balance --total 12G qmp:/run/web.qmp,min=1G qmp:/run/db.qmp,weight=2\n\n\
    A PID stands for its cgroup, if nothing else is in that; else its coldest\n\
    memory is paged out. Needs root, and swap for memory that is no file's.\n\
    A virtual machine of QEMU is named by its QMP socket, and has a balloon.\n\
    Ctrl-C ends; every limit is then what it was before.")]
pub struct Balance {
    /// Total memory to divide
    #[arg(long, value_name = "SIZE", value_parser = total)]
    pub total: Bytes,
    /// A cgroup's path, a PID, name:NAME of a unit, container, pod or Slurm job, or qmp:SOCKET; with ,min=SIZE ,max=SIZE ,weight=NUMBER
    #[arg(value_name = "TARGET", required = true, value_parser = asked)]
    pub targets: Vec<Asked>,
    /// Time between decisions
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s", hide_short_help = true, help_heading = ADVANCED)]
    pub interval: Duration,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = ADVANCED)]
    pub duration: Option<Duration>,
    /// Page idle heap out before files that are read repeatedly; needs swap
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub balance_kinds: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write one JSON object per interval as a line to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print no table
    #[arg(long, short)]
    pub quiet: bool,
}

fn total(text: &str) -> Result<Bytes, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    if bytes.0 > 0 { Ok(bytes) } else { Err("0 is nothing to divide; write 512M or 16G".to_string()) }
}

fn asked(text: &str) -> Result<Asked, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default().trim();
    let name = name.strip_prefix("cgroup:").unwrap_or(name).to_string();
    if ["", "qmp:", "name:"].contains(&name.as_str()) {
        return Err("a target is a cgroup's path, a PID, name:NAME or qmp:SOCKET".into());
    }
    let mut asked = Asked { name, weight: 1.0, least: 0, most: u64::MAX };
    for part in parts {
        let size = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| error.to_string());
        match part.split_once('=') {
            Some(("min", value)) => asked.least = size(value)?,
            Some(("max", value)) => asked.most = size(value)?,
            Some(("weight", value)) => {
                let weight = value.parse().ok().filter(|weight| (0.001..=1000.0).contains(weight));
                asked.weight = weight.ok_or_else(|| format!("'{value}' is not a weight; write 0.5 or 3"))?;
            }
            _ => return Err(format!("'{part}' is none of min=SIZE, max=SIZE and weight=NUMBER")),
        }
    }
    if asked.least > asked.most {
        return Err(format!("its min is more than its max: {} and {}", Bytes(asked.least), Bytes(asked.most)));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_bounds_and_a_weight() {
        let plain = Asked { name: "4711".into(), weight: 1.0, least: 0, most: u64::MAX };
        assert_eq!(asked("4711"), Ok(plain.clone()));
        let all = Asked { name: "/a/b".into(), weight: 2.5, least: 64 << 20, most: 1 << 30 };
        assert_eq!(asked("cgroup:/a/b,min=64M,max=1G,weight=2.5"), Ok(all));
        for (wrong, told) in [
            ("", "a cgroup's path, a PID, name:NAME or qmp:SOCKET"),
            ("qmp:,max=1G", "a cgroup's path, a PID, name:NAME or qmp:SOCKET"),
            ("7,limit=3", "none of min=SIZE"),
            ("7,weight=0", "not a weight"),
            ("7,min=2G,max=1G", "more than its max"),
            ("7,min=much", "not a size"),
        ] {
            assert!(asked(wrong).unwrap_err().contains(told), "{wrong}");
        }
        assert!(total("0").unwrap_err().contains("nothing to divide"));
    }
}
