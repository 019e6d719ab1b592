//! Which rank of which job we were started as, if a launcher started us.

use std::collections::BTreeMap;
use std::env;

use linux::procfs;

/// What a record says of its place in a job, by these options of its header.
pub const JOB: &str = "job";
/// Absent without ranks.
pub const RANK: &str = "rank";
/// How many there are.
pub const RANKS: &str = "ranks";

/// Our place in a job, for a record: of a rank, else of what Slurm runs on this node. Empty outside of jobs.
pub fn place_in_job() -> BTreeMap<String, String> {
    let slurm = || env::var("SLURM_JOB_ID").ok().filter(|job| !job.is_empty()).map(|job| format!("slurm-{job}"));
    let place = match Rank::find() {
        Some(rank) => {
            vec![(JOB, rank.job), (RANK, rank.number.to_string()), (RANKS, rank.ranks.to_string())]
        }
        None => slurm().map(|job| (JOB, job)).into_iter().collect(),
    };
    place.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// Our place in a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// From 0 on.
    pub number: u32,
    /// How many there are.
    pub ranks: u32,
    /// A name of the job that all its ranks have, and no other job.
    pub job: String,
}

impl Rank {
    /// By the environment that Open MPI, PMIx, MPICH's Hydra and Slurm give to what they launch.
    pub fn find() -> Option<Rank> {
        Rank::by(&|name| env::var(name).ok().filter(|value| !value.is_empty()), launcher)
    }

    fn by(set: &dyn Fn(&str) -> Option<String>, launcher: fn() -> String) -> Option<Rank> {
        let number = |name| set(name).and_then(|value| value.parse::<u32>().ok());
        let rank = |number: u32, ranks: Option<u32>, job: String| {
            let job = job.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
            Some(Rank { number, ranks: ranks.unwrap_or(1), job })
        };
        // A batch script has SLURM_PROCID too, but is no step.
        if let (Some(job), Some(step)) = (set("SLURM_JOB_ID"), set("SLURM_STEP_ID")) {
            let own = number("SLURM_PROCID").zip(number("SLURM_STEP_NUM_TASKS"));
            // A step may be mpirun's daemon on this node, whose ranks are not the step's.
            if let Some((number, ranks)) = own.filter(|_| set("OMPI_COMM_WORLD_RANK").is_none()) {
                return rank(number, Some(ranks), format!("slurm-{job}.{step}"));
            }
        }
        if let (Some(own), Some(job)) =
            (number("OMPI_COMM_WORLD_RANK").or_else(|| number("PMIX_RANK")), set("PMIX_NAMESPACE"))
        {
            return rank(own, number("OMPI_COMM_WORLD_SIZE"), format!("pmix-{job}"));
        }
        rank(number("PMI_RANK")?, number("PMI_SIZE"), launcher())
    }
}

/// Hydra gives its job no name: its proxy on this node has one for us.
fn launcher() -> String {
    let mut pid = std::process::id() as i32;
    while let Ok(parent) = procfs::stat(pid).and_then(|stat| procfs::stat(stat.ppid)) {
        if parent.comm.starts_with("hydra") {
            return format!("hydra-{}-{}-{}", procfs::hostname(), parent.pid, parent.starttime);
        }
        pid = parent.pid;
    }
    format!("pmi-{}-{}", procfs::hostname(), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(environment: &'static [(&'static str, &'static str)]) -> Option<(u32, u32, String)> {
        let set = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string());
        Rank::by(&set, || "hydra-here-1-2".into()).map(|rank| (rank.number, rank.ranks, rank.job))
    }

    #[test]
    fn fuzz_ranks() {
        fuzz::run("ranks", &fuzz::corpus("ranks"), |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let set = |name: &str| {
                text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_string()))
            };
            if let Some(rank) = Rank::by(&set, || "hydra".into()) {
                assert!(rank.job.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c)), "{}", rank.job);
            }
        });
    }

    #[test]
    fn every_launcher_tells_the_rank_in_its_own_way() {
        let open_mpi =
            &[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_NAMESPACE", "prterun-a@1")];
        assert_eq!(found(open_mpi), Some((3, 4, "pmix-prterun-a-1".into())));
        assert_eq!(found(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]), Some((1, 2, "hydra-here-1-2".into())));
        let step =
            &[("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
        assert_eq!(found(step), Some((1, 2, "slurm-7.0".into())));
    }

    #[test]
    fn a_batch_script_is_no_rank() {
        assert_eq!(found(&[("SLURM_JOB_ID", "7"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(found(&[]), None);
    }
}
