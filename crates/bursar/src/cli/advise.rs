//! The command line of `bursar advise`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use model::Bytes;

use super::ADVANCED;
use super::target::Target;
use super::values::{duration, ghz, some_bytes};
use ways::Way;

/// `bursar advise`
#[derive(Debug, Subcommand)]
pub enum Advise {
    /// Run a command several times in each way of having huge pages, and name the fastest
    Try(Try),
    /// Run a command with huge pages and populated memory where they are worth it
    Run(Run),
    /// Measure what huge pages are worth to each part of a command's memory
    Profile(Profile),
    /// Promote the hot memory of a running program to huge pages, and split huge pages that it does not use
    Attach(Attach),
    /// Check a profile, and print each error with its line
    Check {
        /// The profile, or - for standard input
        #[arg(value_name = "PROFILE")]
        profile: PathBuf,
    },
    /// Print the costs of page operations on this machine; measured once, then kept
    Costs(Costs),
    /// Convert a profile of CBMM (CSV)
    Convert(Convert),
}

/// `bursar advise try`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar advise try -- ./solver input.dat\n  \
    bursar advise try --rounds 20 --time-limit 30m -- ./solver input.dat\n  \
    bursar advise try --arms glibc-hugetlb,advise -- sort < big.txt\n\n\
    Each round runs the command once in each way, so it must bear that. Ways that are surely\n\
    slower are dropped, and it ends when the best is known. Each run reads the same standard\n\
    input: a file is opened again, a pipe is kept first (at most 1 GiB). What the command\n\
    prints is dropped. Ways that set huge pages for the whole machine (always, mthp-SIZE) need\n\
    root; other programs start with that setting, too, while such a run lasts. It is put back\n\
    after each run, and after bursar was killed by the next bursar. Ctrl-C prints what is known.\n\n\
    Ways: glibc-hugetlb, advise, provision, advise-profile, provision-pool, always, never,\n\
    mthp-SIZE (mthp-64k, mthp-1m, or another that the kernel has).")]
pub struct Try {
    /// Ways to compare with the plain run [default: all that this machine and the command allow]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Way::parse)]
    pub arms: Vec<Way>,
    /// Rounds at most; fewer if the best way is known before [default: 12, or up to 40 if a run takes less than a second]
    #[arg(long, value_name = "MAX", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Start no run after this time
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = ADVANCED)]
    pub time_limit: Option<Duration>,
    /// Standard input of each run [default: bursar's own, if that is a file or a pipe]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print no report and no progress
    #[arg(long, short, hide_short_help = true, help_heading = ADVANCED)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// `bursar advise run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar advise run -- ./solver input.dat\n  \
    bursar advise run --profile solver.profile -- ./solver input.dat\n  \
    bursar advise run --profile solver.profile --huge-pages 200M -- ./solver input.dat\n  \
    bursar advise run --pool default -- ./solver input.dat         after bursar pool create 8G\n\n\
    Without a profile, memory that is filled in order is populated ahead of the program,\n\
    and what is touched here and there keeps pages of 4 KiB. The program must be linked\n\
    dynamically. Its output, signals and exit status are its own.")]
pub struct Run {
    /// The profile of the program's memory, or - for standard input
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// Take memory from this pool (bursar pool), except where the profile says that it does not pay
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// Use at most this much memory in huge pages (200M, 4G) in each process: the ranges of the profile that gain most
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, requires = "profile", conflicts_with = "pool", hide_short_help = true, help_heading = ADVANCED)]
    pub huge_pages: Option<Bytes>,
    /// Write the actions as JSON to FILE (of a rank: FILE.RANK), or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Keep a record of the decisions in FILE (of a rank: FILE.RANK), for bursar report
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = ADVANCED)]
    pub record: Option<PathBuf>,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// `bursar advise profile`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar advise profile -- ./solver input.dat\n  \
    bursar advise run --profile solver.profile -- ./solver input.dat\n\n\
    One run of some seconds is enough; of half a minute it is surer, for huge pages are tried in\n\
    it. The command has pages of 4 KiB for so long, but for these, and where it asks for huge\n\
    ones itself. What it accesses is seen with root, or CAP_SYS_NICE, CAP_SYS_PTRACE,\n\
    CAP_BPF and CAP_PERFMON, and Linux 6.1 on x86-64; without, the profile says what is\n\
    touched, so that what is filled is huge from its first touch and what is sparse is not.")]
pub struct Profile {
    /// Write the profile to FILE (of a rank: FILE.RANK), or to standard output with -; COMMAND.profile if not given
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// `bursar advise attach`
#[derive(Debug, Args)]
#[command(mut_group("target", |target| target.required(true)))]
#[command(after_help = "Examples:\n  \
    bursar advise attach --pid 4711\n  \
    bursar advise attach --name batch.service --duration 10m --stats -\n\n\
    --pid means the process and its descendants.\n\
    Looking at a program's memory clears Accessed bits of some of its pages: that takes it a\n\
    little time, and moves these pages in the kernel's order of reclaim. All that the\n\
    agent does is kept under 2 % of one processor. Needs root, or CAP_SYS_NICE, CAP_SYS_PTRACE,\n\
    CAP_BPF and CAP_PERFMON, and Linux 6.1 on x86-64.")]
pub struct Attach {
    #[command(flatten)]
    pub target: Target,
    /// Time between decisions
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s", hide_short_help = true, help_heading = ADVANCED)]
    pub interval: Duration,
    /// Huge pages to promote or split per second, at most
    #[arg(long, value_name = "N", default_value_t = 50, hide_short_help = true, help_heading = ADVANCED)]
    pub rate: u32,
    /// End after this time [default: when the program ends]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = ADVANCED)]
    pub duration: Option<Duration>,
    /// Print the decisions, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the actions as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Keep a record of the decisions in FILE, for bursar report
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = ADVANCED)]
    pub record: Option<PathBuf>,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// `bursar advise costs`
#[derive(Debug, Args)]
#[command(after_help = "Measured at first use, in some tenths of a second, and again after the machine was\n\
    started anew. All are nanoseconds of the program's time.")]
pub struct Costs {
    /// Measure again
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub again: bool,
    /// Write the costs as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `bursar advise convert`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    bursar advise convert xz.csv --program /usr/bin/xz --ghz 2.2 --maps xz.maps > xz.profile\n\n\
    The profile goes to standard output. Rules that cannot be told in it are named by line\n\
    on standard error. CBMM's addresses hold without randomisation: take the snapshot of\n\
    /proc/PID/maps in a run under setarch -R.")]
pub struct Convert {
    /// The file
    #[arg(value_name = "CSV")]
    pub csv: PathBuf,
    /// The program's own file
    #[arg(long, value_name = "FILE")]
    pub program: PathBuf,
    /// Clock rate of the processor on which the profile was made
    #[arg(long, value_name = "GHZ", value_parser = ghz)]
    pub ghz: f64,
    /// A copy of /proc/PID/maps of that run; without it, rules with addresses are left out
    #[arg(long, value_name = "FILE")]
    pub maps: Option<PathBuf>,
}
