//! The plugin that gathers the figures of the accounting.

/// `JobAcctGatherType`, and what else decides what its figures hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gatherer {
    /// `jobacct_gather/linux`.
    Linux,
    /// `jobacct_gather/cgroup`, on an unknown version of cgroups.
    Cgroup,
    /// The same, on cgroup v1.
    CgroupV1,
    /// The same, on cgroup v2.
    CgroupV2,
    /// On cgroup v2, with `JobAcctGatherParams=no_file_cache`.
    CgroupNoFileCache,
}
