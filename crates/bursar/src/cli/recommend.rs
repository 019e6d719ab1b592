//! The command line of `bursar recommend`.

use std::path::PathBuf;

use ::slurm::{Gatherer, Version};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::ADVANCED;
use super::values::rate;

/// `bursar recommend`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar recommend                           your own jobs of 30 days\n  \
    bursar recommend --user ada --days 7\n  \
    sacct --json -S now-7days >jobs.json; bursar recommend --from jobs.json\n  \
    bursar recommend --from - <jobs.txt  of sacct -P, see docs/slurm.md\n\n\
    Columns: half need, 95 % need, most: memory that half of the runs, 95 % and all\n\
    need at most; cache: page cache or shared memory beside it; asked: the request;\n\
    --mem: what to ask for (<= and >= are bounds; > is less than is needed, since no\n\
    run ended well); saves: memory times hours not reserved; killed: past runs that\n\
    need more; next: how likely the next run is to need more.\n\n\
    Nothing is run and nothing is changed: the figures are those of the site's\n\
    accounting (sacct).")]
pub struct Recommend {
    /// Jobs of this user [default: your own; root sees all]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Jobs that started within this many days
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub days: u32,
    /// Share of the runs that must not be killed
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = rate, hide_short_help = true, help_heading = ADVANCED)]
    pub percentile: f64,
    /// How jobs are grouped into kinds: a column of sacct (Comment, Account, …), or a regular expression, whose match in the job's name (or its groups) is
    /// the kind [default: by name, without numbers; by rule of Snakemake and process of Nextflow; JobName: by the exact name]
    #[arg(long, value_name = "COLUMN|REGEX", hide_short_help = true, help_heading = ADVANCED)]
    pub by: Option<String>,
    /// Read what sacct --json or sacct -P printed, instead of running it; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "days")]
    pub from: Option<PathBuf>,
    /// The plugin that gathered the figures (JobAcctGatherType) [default: as scontrol, or the figures themselves, show]
    #[arg(long, value_name = "PLUGIN", value_parser = gatherer(), hide_short_help = true, help_heading = ADVANCED)]
    pub gatherer: Option<Gatherer>,
    /// The version of Slurm that gathered the figures, such as 24.11.5 [default: as sacct's JSON says]
    #[arg(long, value_name = "VERSION", hide_short_help = true, help_heading = ADVANCED)]
    pub slurm_version: Option<Version>,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// As they are called on the command line, what their figures are, and which they are.
const GATHERERS: [(&str, &str, Gatherer); 5] = [
    ("linux", "jobacct_gather/linux: RSS of processes, with shared memory and mapped files", Gatherer::Linux),
    ("cgroup", "jobacct_gather/cgroup: heap, or heap with page cache, by version", Gatherer::Cgroup),
    ("cgroup-v1", "The same, on cgroup v1", Gatherer::CgroupV1),
    ("cgroup-v2", "The same, on cgroup v2", Gatherer::CgroupV2),
    (
        "cgroup-no-file-cache",
        "jobacct_gather/cgroup on cgroup v2, with JobAcctGatherParams=no_file_cache",
        Gatherer::CgroupNoFileCache,
    ),
];

fn gatherer() -> impl TypedValueParser<Value = Gatherer> {
    let named = |name: String| GATHERERS.into_iter().find(|(known, ..)| *known == name).map(|(.., gatherer)| gatherer);
    PossibleValuesParser::new(GATHERERS.map(|(name, help, _)| PossibleValue::new(name).help(help)))
        .try_map(move |name| named(name).ok_or("no such plugin"))
}
