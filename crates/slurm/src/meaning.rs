//! What MaxRSS and `vmem` of the accounting hold: by plugin, version of Slurm and cgroup (docs/slurm.md has the table).

use model::Figures;

use crate::Gatherer;
use crate::accounting::PrintedStep;
use crate::version::Version;

/// What is known of who gathered the figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathering {
    /// The plugin.
    pub gatherer: Option<Gatherer>,
    /// Of Slurm.
    pub version: Option<Version>,
    /// JobAcctGatherParams, in lower case.
    pub params: String,
    /// JobAcctGatherFrequency of tasks.
    pub interval_seconds: Option<u64>,
}

/// What the figures themselves show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// A step with less `vmem` than `mem`: a process never has less address space than resident memory.
    vmem_below_mem: bool,
    /// The same, and not 0: the peak is the kernel's (24.11 and later), and `vmem` is sampled.
    vmem_below_peak: bool,
    /// A step with exactly as much: the same.
    vmem_equals_mem: bool,
    /// A step with more `vmem` than its limit: address space.
    vmem_above_limit: bool,
    has_vmem: bool,
}

/// What the figures hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    pub figures: Figures,
    /// `vmem` less `mem` is page cache or shared memory beside the figure.
    pub has_cache_beside: bool,
    /// The kernel kept the peak: a short step has the right figure, if it has one.
    pub is_peak: bool,
    pub interval_seconds: Option<u64>,
    /// Such as `jobacct_gather/cgroup`.
    pub plugin: Option<&'static str>,
    /// Why the answer is not sure.
    pub doubt: Option<String>,
    pub note: Option<String>,
}

const CACHE_INCLUDED: Version = Version(23, 11, 0);
const KERNEL_PEAK: Version = Version(24, 11, 0);
const VMEM_IS_MEMORY: Version = Version(22, 5, 1);
const NO_FILE_CACHE: Version = Version(25, 11, 1);
/// 25.11.1 to 25.11.3 read the peak at the first poll only.
const PEAK_AGAIN: Version = Version(25, 11, 4);

const FIND: &str = "bursar budget finds what the jobs need";
const NO_SHARED: &str = "a job that uses it (MPI, /dev/shm, MAP_SHARED) needs more than --mem";

impl Evidence {
    pub fn add(&mut self, step: &PrintedStep, limit: Option<u64>) {
        let memory = step.tasks_bytes.or(step.largest_task_bytes).filter(|bytes| *bytes > 0);
        let (Some(memory), Some(all)) = (memory, step.virtual_bytes) else { return };
        self.has_vmem |= all > 0;
        self.vmem_below_mem |= all < memory;
        self.vmem_below_peak |= all > 0 && all < memory;
        self.vmem_equals_mem |= all == memory && step.is_exact;
        self.vmem_above_limit |= limit.is_some_and(|limit| limit > 0 && all > limit);
    }

    fn is_of_a_cgroup(self) -> bool {
        self.vmem_below_mem || (self.vmem_equals_mem && !self.vmem_above_limit)
    }
}

impl Gathering {
    /// What the figures hold, as far as it can be known.
    pub fn meaning(&self, evidence: Evidence) -> Meaning {
        match self.gatherer {
            Some(Gatherer::Linux) => self.linux(),
            Some(_) => self.cgroup(evidence),
            None if evidence.is_of_a_cgroup() => self.cgroup(evidence),
            None => self.unknown(),
        }
    }

    fn base(&self, figures: Figures) -> Meaning {
        Meaning {
            figures,
            has_cache_beside: false,
            is_peak: false,
            interval_seconds: self.interval_seconds,
            plugin: None,
            doubt: None,
            note: None,
        }
    }

    fn linux(&self) -> Meaning {
        let note = "MaxRSS is that of jobacct_gather/linux: RSS, with shared memory and with pages of files that are mapped. It leaves out other \
                    page cache; bursar budget finds what of it is worth its memory";
        let no_shared = self
            .params
            .contains("noshare")
            .then(|| format!("not sure: MaxRSS leaves out shared memory (JobAcctGatherParams=NoShared): {NO_SHARED}"));
        Meaning {
            plugin: Some("jobacct_gather/linux"),
            doubt: no_shared,
            note: Some(note.into()),
            ..self.base(Figures::Needed)
        }
    }

    fn unknown(&self) -> Meaning {
        let doubt = "not sure: what MaxRSS holds is not known, for nothing says which plugin gathered it. With jobacct_gather/cgroup it leaves out \
                     shared memory or holds page cache, by version. Give --gatherer (scontrol show config, JobAcctGatherType) and --slurm-version";
        Meaning { doubt: Some(doubt.into()), ..self.base(Figures::MayHoldCache) }
    }

    fn cgroup(&self, evidence: Evidence) -> Meaning {
        let cgroup = match self.gatherer {
            Some(Gatherer::CgroupV1) => Some(1),
            Some(Gatherer::CgroupV2) => Some(2),
            _ => None,
        };
        let no_file_cache = self.gatherer == Some(Gatherer::CgroupNoFileCache)
            || (cgroup == Some(2) && self.params.contains("no_file_cache"));
        let holds_cache = match (self.version, cgroup) {
            (Some(version), _) if version >= KERNEL_PEAK => true,
            (Some(version), Some(cgroup)) => version >= CACHE_INCLUDED && cgroup == 2,
            // `vmem` is 0 there on cgroup v2, and is no less than `mem` on v1.
            (Some(version), None) => version >= CACHE_INCLUDED && evidence.vmem_below_mem,
            (None, _) => evidence.vmem_below_mem,
        };
        let meaning = if no_file_cache && self.version.is_none_or(|version| version >= NO_FILE_CACHE) {
            let note = "MaxRSS is memory.current without the page cache, sampled: heap, shared memory and kernel memory (no_file_cache)";
            Meaning { note: Some(note.into()), ..self.base(Figures::Needed) }
        } else if holds_cache {
            self.charge(cgroup, evidence)
        } else {
            self.heap(evidence)
        };
        Meaning { plugin: Some("jobacct_gather/cgroup"), ..meaning }
    }

    fn charge(&self, cgroup: Option<u8>, evidence: Evidence) -> Meaning {
        let is_peak = match self.version {
            Some(version) => {
                version >= KERNEL_PEAK && (cgroup == Some(1) || !(NO_FILE_CACHE..PEAK_AGAIN).contains(&version))
            }
            None => evidence.vmem_below_peak,
        };
        let by = match self.version {
            Some(version) => format!("jobacct_gather/cgroup of Slurm {version}"),
            None => "jobacct_gather/cgroup".to_string(),
        };
        Meaning {
            is_peak,
            doubt: Some(format!(
                "upper bound: MaxRSS holds page cache ({by}). --mem is at most the request, unless a job was killed at its request; {FIND}"
            )),
            note: Some(
                "a site with cgroup v2 and Slurm 25.11.1 or later can leave page cache out: JobAcctGatherParams=no_file_cache".into(),
            ),
            ..self.base(Figures::HoldCache)
        }
    }

    fn heap(&self, evidence: Evidence) -> Meaning {
        let vmem_is_memory = match self.version {
            Some(version) => version >= VMEM_IS_MEMORY,
            None => !evidence.vmem_above_limit,
        };
        // Address space in `vmem` is a sign of a version before 22.05.1, in which MaxRSS holds no page cache.
        let is_known = self.version.is_some() || evidence.vmem_above_limit;
        let figures = if is_known { Figures::Needed } else { Figures::MayHoldCache };
        if vmem_is_memory && evidence.has_vmem {
            let doubt = format!(
                "upper bound: beside the heap (MaxRSS), --mem holds what vmem has more: page cache or shared memory, which this accounting does \
                 not tell apart; {FIND}"
            );
            return Meaning { has_cache_beside: true, doubt: Some(doubt), ..self.base(figures) };
        }
        let vmem = match self.version {
            Some(version) if version < VMEM_IS_MEMORY => "vmem is address space before Slurm 22.05.1",
            _ if evidence.has_vmem => "vmem is more than the limit, so it is address space",
            _ => "no vmem shows it",
        };
        let doubt = format!("not sure: MaxRSS is heap and leaves out shared memory, and {vmem}: {NO_SHARED}");
        Meaning { doubt: Some(doubt), ..self.base(figures) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(gatherer: Gatherer, version: &str, mem: u64, vmem: u64) -> Meaning {
        let mut evidence = Evidence::default();
        let step = PrintedStep {
            largest_task_bytes: Some(mem),
            virtual_bytes: Some(vmem),
            is_exact: true,
            ..PrintedStep::default()
        };
        evidence.add(&step, Some(1000));
        Gathering { gatherer: Some(gatherer), version: version.parse().ok(), ..Gathering::default() }.meaning(evidence)
    }

    #[test]
    fn figures_mean_what_the_table_in_the_docs_says() {
        use Gatherer::{Cgroup, CgroupNoFileCache, CgroupV1, CgroupV2, Linux};
        use model::Figures::{HoldCache, MayHoldCache, Needed};
        for (gatherer, version, mem, vmem, figures, beside, is_peak) in [
            (Linux, "24.11.5", 100, 900, Needed, false, false),
            (CgroupV1, "21.08.8", 100, 900, Needed, false, false),
            (Cgroup, "22.05.0", 100, 900, Needed, false, false),
            (Cgroup, "22.05.8", 100, 900, Needed, true, false),
            (CgroupV2, "23.02.6", 100, 0, Needed, false, false),
            (CgroupV1, "23.11.4", 100, 900, Needed, true, false),
            (CgroupV2, "23.11.4", 100, 0, HoldCache, false, false),
            (Cgroup, "24.05.1", 100, 0, HoldCache, false, false),
            (Cgroup, "24.11.5", 100, 900, HoldCache, false, true),
            (CgroupV1, "25.11.2", 100, 90, HoldCache, false, true),
            (CgroupV2, "25.11.2", 100, 90, HoldCache, false, false),
            (CgroupV2, "25.11.4", 100, 90, HoldCache, false, true),
            (CgroupNoFileCache, "25.11.1", 100, 90, Needed, false, false),
            (CgroupNoFileCache, "25.05.1", 100, 90, HoldCache, false, true),
            (Cgroup, "", 100, 900, MayHoldCache, true, false),
            (Cgroup, "", 100, 2000, Needed, false, false),
            (Cgroup, "", 100, 90, HoldCache, false, true),
            (Cgroup, "", 100, 0, HoldCache, false, false),
        ] {
            let found = meaning(gatherer, version, mem, vmem);
            let found = (found.figures, found.has_cache_beside, found.is_peak);
            assert_eq!(found, (figures, beside, is_peak), "{gatherer:?} {version} {mem} {vmem}");
        }
    }

    #[test]
    fn less_address_space_than_memory_is_a_cgroup() {
        let unknown = |mem, vmem| {
            let mut evidence = Evidence::default();
            let step = PrintedStep {
                largest_task_bytes: Some(mem),
                virtual_bytes: Some(vmem),
                is_exact: true,
                ..PrintedStep::default()
            };
            evidence.add(&step, None);
            Gathering::default().meaning(evidence).plugin
        };
        assert_eq!(
            (unknown(100, 99), unknown(100, 100)),
            (Some("jobacct_gather/cgroup"), Some("jobacct_gather/cgroup"))
        );
        assert_eq!(unknown(100, 101), None);
    }
}
