//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use curve::intermittent::Checkpoint;
use curve::trace::{Column, Format};
use model::Bytes;
use provision::manage::Placement;

pub use crate::advise::cli::Advise;

/// How much memory a program needs, what each further byte buys, and what the usual ways of guessing would have cost.
#[derive(Debug, Parser)]
#[command(name = "bursar", version, max_term_width = 110, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  \
    bursar run -- make -j8                  the account of one run\n  \
    bursar budget -- ./solver input.dat     the least memory that will do\n  \
    bursar report RECORD --html page.html   the same again, as a page\n  \
    bursar watch -- ./solver input.dat      what it uses of its memory, live\n  \
    bursar attribute -- mpirun -n 4 ./app   who inside it holds the memory\n  \
    bursar provision -- ./solver input.dat  memory without page faults\n  \
    bursar pool create 8G                   reserve the memory for that\n  \
    bursar faults -- ./solver input.dat     how long its page faults take\n  \
    bursar advise run -- ./solver           huge pages where they are worth it\n  \
    bursar curve trace TRACE                what each size of a cache would miss\n  \
    bursar doctor                           what this machine allows\n\n\
    Exit status: the command's own; 124 time-out; 125 bursar's own failure;\n\
    126 and 127 as a shell.")]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
}

/// One file per subcommand.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a command once and give its account; or watch one that runs already
    Run(Run),
    /// Find the least memory at which a command stays within a slow-down
    Budget(Budget),
    /// Tell what a running program does with its memory, while it runs
    Watch(Watch),
    /// Tell who inside a command holds its memory: application, MPI, any library
    Attribute(Attribute),
    /// Run a command on memory that is there when it asks for it: from a pool, else the kernel's huge pages
    Provision(Provision),
    /// Tell how long a command's page faults take, by kind, to the slowest
    Faults(Faults),
    /// Memory set apart and populated, for programs run by bursar provision
    #[command(subcommand)]
    Pool(Pool),
    /// Huge pages and eager memory where their benefit exceeds their cost
    #[command(subcommand)]
    Advise(Advise),
    /// Print a record's report again, or write it as one HTML page
    Report(Report),
    /// Write a record as JSON, CSV, Parquet or a Perfetto trace
    Export(Export),
    /// What each further byte of memory buys: demand curves
    #[command(subcommand)]
    Curve(Curve),
    /// Say what this machine allows, what is missing and how to enable it
    Doctor(Doctor),
    /// Print the man page
    #[command(hide = true)]
    Man,
    /// Print shell completions
    #[command(hide = true)]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

/// Where results go.
#[derive(Debug, Args)]
pub struct Results {
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Keep the record in FILE [default: a new file under ~/.local/state/bursar]
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Print no summary and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// `bursar run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar run -- ./solver input.dat\n  \
    bursar run --json - -- sort big.txt > /dev/null\n  \
    bursar run -n 5 -- make -j8\n  \
    bursar run --limit 2G -- ./solver input.dat\n  \
    bursar run --attach 4711 --tree\n\n\
    The summary goes to standard error; the command's own output is left alone.\n\
    Sizes are binary: 512M and 512MiB are the same. Times: 90s, 500ms, 5m.")]
pub struct Run {
    /// Watch a running process (PID) or a cgroup (path) instead of starting a command, until it ends or Ctrl-C
    #[arg(long, value_name = "PID|CGROUP", conflicts_with_all = ["command", "limit", "runs"])]
    pub attach: Option<String>,
    /// With --attach PID: the process and all its descendants
    #[arg(long, requires = "attach", conflicts_with = "cgroup")]
    pub tree: bool,
    /// With --attach PID: everything in the process's cgroup
    #[arg(long, requires = "attach")]
    pub cgroup: bool,
    /// Run it under this limit, without swap (such as 512M or 1.5GiB)
    #[arg(long, value_name = "SIZE")]
    pub limit: Option<Bytes>,
    /// Run it N times, and give mean, standard deviation and spread
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Time between samples, such as 100ms [default: adapts, so that sampling costs less than 1 % of one core]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub interval: Option<Duration>,
    /// End the command after this time (status 124)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "attach")]
    pub command: Vec<OsString>,
}

/// `bursar budget`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar budget -- ./solver input.dat\n  \
    bursar budget --slowdown 10% --html page.html -- ./solver input.dat\n  \
    bursar budget --prepare 'make clean' -- make -j8\n  \
    bursar budget -- sh -c 'sqlite3 big.db < query.sql'\n  \
    bursar budget --resume RECORD             go on after Ctrl-C\n  \
    bursar budget --provisioned -- ./solver   the pool to reserve\n\n\
    The command is run some 6 to 16 times, so it must bear that. It reads\n\
    /dev/null as its standard input, and what it prints is dropped. Limits need\n\
    root, systemd or Slurm: see bursar doctor.")]
pub struct Budget {
    /// How much slower than without a limit it may be
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub slowdown: f64,
    /// Runs without a limit [default: 1 to 4, as their spread asks for], and at each limit compared [default: 2, or 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub runs: Option<u32>,
    /// At most so many trials under a limit, the methods' own not counted
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_trials: u32,
    /// End any single run after this time; under a limit that is a result
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Do not try the limits that the usual methods would have set
    #[arg(long)]
    pub no_compare: bool,
    /// Try them (the default; for scripts that say so)
    #[arg(long, conflicts_with = "no_compare", hide = true)]
    pub compare: bool,
    /// Let the methods' trials run to their end instead of stopping them once they are far too slow
    #[arg(long)]
    pub full: bool,
    /// Run this shell command before each run, outside the limit
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,
    /// Empty the whole machine's page cache before each run (root)
    #[arg(long, conflicts_with = "as_found")]
    pub drop_caches: bool,
    /// Leave alone what was in the page cache before, even if the command then gets it for nothing
    #[arg(long)]
    pub as_found: bool,
    /// Time between samples, such as 100ms [default: adapts, so that sampling costs less than 1 % of one core]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub interval: Option<Duration>,
    /// Run it once, as it is, and tell the pool that `bursar provision` would take to serve all of it
    #[arg(long, conflicts_with_all = ["slowdown", "runs", "max_trials", "timeout", "no_compare", "full", "prepare",
        "drop_caches", "as_found", "interval", "resume", "record", "html"])]
    pub provisioned: bool,
    /// Go on with a budget that was interrupted, with its command and its options
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["command", "record"])]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "resume")]
    pub command: Vec<OsString>,
}

/// `bursar watch`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar watch -- ./solver input.dat\n  \
    bursar watch --intrusive 4711\n  \
    bursar watch --intrusive --json - /sys/fs/cgroup/system.slice/db.service\n  \
    bursar watch --record db.bursar --intrusive 4711\n  \
    bursar watch --replay db.bursar\n\n\
    A line an interval: on standard error beside a command, else on standard\n\
    output. Ctrl-C ends. Looking clears the Accessed bits of some pages: of\n\
    processes that bursar did not start only with --intrusive.")]
pub struct Watch {
    /// A process, with all beneath it, or a cgroup's path
    #[arg(value_name = "PID|CGROUP", conflicts_with_all = ["command", "replay"])]
    pub target: Option<String>,
    /// Time from line to line
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub interval: Duration,
    /// What looking may cost, as a share of one processor, the program's own loss included
    #[arg(long, value_name = "SHARE", value_parser = rate, default_value = "2%")]
    pub overhead: f64,
    /// Never stop looking; else it is off while the working set stays what it is
    #[arg(long)]
    pub always: bool,
    /// Look at hot pages as often as at others, to measure what leaving them in peace is worth
    #[arg(long, hide = true)]
    pub no_hot_set: bool,
    /// Look at processes that bursar did not start, too
    #[arg(long)]
    pub intrusive: bool,
    /// Keep every interval in FILE
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Tell again what FILE has kept, instead of watching
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "record", "always", "intrusive"])]
    pub replay: Option<PathBuf>,
    /// Write an object an interval as JSON lines to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print no lines
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["target", "replay"])]
    pub command: Vec<OsString>,
}

/// `bursar attribute`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar attribute -- mpirun -n 4 ./app\n  \
    bursar attribute --component hdf5='libhdf5*.so*' -- mpirun -n 4 ./app\n  \
    bursar attribute --by-library -- python3 model.py\n  \
    bursar attribute --by touch --comm-matrix -- mpirun -n 4 ./app\n  \
    bursar attribute --scaling 1,2,4 -- mpirun -n {} ./app\n  \
    mpirun -n 4 bursar attribute --record job.bursar -- ./app\n\n\
    Memory is whose call obtained it, or by touch in whose code it first became\n\
    resident. A library in the command sees that, so the command must be linked\n\
    dynamically. Logs are kept beside the record while it runs: with several nodes,\n\
    name one that all see by --record.")]
pub struct Attribute {
    /// What shared objects of this name obtain is NAME's; mpi=… adds to the MPI libraries known (repeatable)
    #[arg(long = "component", value_name = "NAME=GLOB", value_parser = component)]
    pub components: Vec<(String, String)>,
    /// What makes memory a component's
    #[arg(long, value_enum, default_value_t)]
    pub by: By,
    /// Break every component down by shared object
    #[arg(long)]
    pub by_library: bool,
    /// Count the messages and bytes that each rank sends to each other
    #[arg(long)]
    pub comm_matrix: bool,
    /// Time between looks at a process's memory, at the fastest
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100ms")]
    pub interval: Duration,
    /// The most that each process may log
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub log_limit: Bytes,
    /// Run it once for each number, in place of every {} in the command, and compare the peaks
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub scaling: Vec<u32>,
    /// End the command after this time (status 124)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Report the logs that a run has left in FOLDER, as when bursar was killed, instead of running a command
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["command", "scaling"])]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "from")]
    pub command: Vec<OsString>,
}

/// `bursar faults`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar faults -- ./solver input.dat\n  \
    bursar faults --json - -q -- ./solver input.dat\n  \
    bursar faults --html page.html --beside 'make -C src clean all' -- ./solver\n\n\
    How long each fault takes needs root (see bursar doctor); without, faults are\n\
    only counted. Meanwhile faults of all other processes take a few tenths of a\n\
    microsecond more.")]
pub struct Faults {
    /// Run it once more, beside this shell command, which is begun again whenever it ends
    #[arg(long, value_name = "LOAD")]
    pub beside: Option<String>,
    #[command(flatten)]
    pub results: Results,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// What makes memory a component's.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub enum By {
    /// Its call obtained it
    #[default]
    Owner,
    /// In its code it first became resident
    Touch,
}

/// `bursar provision`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar provision -- ./solver input.dat\n  \
    bursar provision --pool hpc --size 4G --pin -- ./solver input.dat\n  \
    bursar provision -- mpirun -n 4 ./app\n  \
    mpirun -n 4 bursar provision --stats job.json -- ./app     job.json.0 to job.json.3\n  \
    sudo bursar pool create 8G                                 a pool, once\n\n\
    Heap, anonymous mappings and large .bss are served with pages that are there\n\
    already, so that touching them does not fault. The program must be linked\n\
    dynamically. Its output, signals and exit status are its own.")]
pub struct Provision {
    /// The pool to take memory from [default: the pool `default` if its broker answers, else the kernel's huge pages]
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// Take this much from the pool when a process first needs some, instead of as it needs it
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Keep each process to the processors of the NUMA node its memory is from
    #[arg(long)]
    pub pin: bool,
    /// Who serves what the pool has no more memory for
    #[arg(long, value_enum, default_value_t)]
    pub on_exhaustion: OnExhaustion,
    /// Write what was served as JSON to FILE (of a rank: FILE.RANK), or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

/// What becomes of requests that the pool cannot serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub enum OnExhaustion {
    /// The kernel serves them
    #[default]
    Linux,
    /// They fail with ENOMEM
    Fail,
}

/// `bursar pool`
#[derive(Debug, Subcommand)]
pub enum Pool {
    /// Reserve memory, populate it, and start the broker that lends it
    Create(PoolCreate),
    /// Be the broker, in the foreground (for systemd, and after a broker was killed)
    Serve {
        /// The pool
        #[arg(value_name = "NAME", default_value = linux::pools::DEFAULT)]
        name: String,
    },
    /// Tell what pools there are, and who has what of them
    Status {
        /// One pool [default: all]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// As JSON, on standard output
        #[arg(long)]
        json: bool,
    },
    /// Add memory to a pool
    Grow(PoolChange),
    /// Take memory from a pool, as far as it is free
    Shrink(PoolChange),
    /// Remove a pool, and give back what was reserved for it
    Destroy {
        /// The pool
        #[arg(long, value_name = "NAME", default_value = linux::pools::DEFAULT)]
        name: String,
        /// Even if processes have memory of it: they keep it to their end
        #[arg(long)]
        force: bool,
    },
}

/// `bursar pool create`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sudo bursar pool create 16G\n  \
    sudo bursar pool create 64G --page 1G --node 1 --name near-gpu\n  \
    sudo bursar pool create 32G --owner root:hpc --per-user 8G\n\n\
    The pool stays until bursar pool destroy, or until the machine is started anew.")]
pub struct PoolCreate {
    /// How much, such as 16G; rounded up to whole segments
    #[arg(value_name = "SIZE", value_parser = some_bytes)]
    pub size: Bytes,
    /// The pool's name
    #[arg(long, value_name = "NAME", default_value = linux::pools::DEFAULT)]
    pub name: String,
    /// From one NUMA node, or page by page from all in turn [default: segment by segment]
    #[arg(long, value_name = "N|interleave", value_parser = placement)]
    pub node: Option<Placement>,
    /// Size of its pages: 2M or 1G
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page)]
    pub page: u64,
    /// What the memory is: the kernel's huge pages, or devices of memory set apart at boot
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// Who may use it, beside root
    #[arg(long, value_name = "USER[:GROUP]", default_value = "root")]
    pub owner: String,
    /// Mode of the broker's socket: who may write may use the pool
    #[arg(long, value_name = "MODE", default_value = "0660", value_parser = mode)]
    pub mode: u32,
    /// At most so much for the processes of one user together
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub per_user: Option<Bytes>,
}

/// `bursar pool grow` and `shrink`
#[derive(Debug, Args)]
pub struct PoolChange {
    /// By how much; whole segments
    #[arg(value_name = "SIZE", value_parser = some_bytes)]
    pub size: Bytes,
    /// The pool
    #[arg(long, value_name = "NAME", default_value = linux::pools::DEFAULT)]
    pub name: String,
}

/// What a pool is made of.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Backend {
    /// Huge pages of the kernel's
    #[default]
    Hugetlb,
    /// Devices of device-dax
    Dax,
}

/// `bursar report`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar report job.bursar\n  \
    bursar report job.bursar --html page.html\n\n\
    The record may still be being written, or have been cut short.")]
pub struct Report {
    /// A record
    pub record: PathBuf,
    /// Write the report as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `bursar export`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar export job.bursar --format csv > job.csv\n  \
    bursar export job.bursar --format perfetto -o job.json   for ui.perfetto.dev\n\n\
    A record is an SQLite file: sqlite3 job.bursar .schema")]
pub struct Export {
    /// A record
    pub record: PathBuf,
    /// json, csv, parquet or perfetto
    #[arg(long, short)]
    pub format: export::Format,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `bursar curve`
#[derive(Debug, Subcommand)]
pub enum Curve {
    /// The miss ratio curve of a trace of references
    Trace(Box<Trace>),
    /// What intermittent tracking would have made of records that were tracked all the time
    Replay(Replay),
}

/// `bursar curve replay`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar watch --always --record solver.bursar -- ./solver input.dat\n  \
    bursar curve replay solver.bursar --html page.html\n  \
    bursar curve replay *.bursar --width 3 --checkpoint 10,5,20\n\n\
    The arms are those of the paper (IMT): always on, a fixed threshold from 0.05\n\
    to 0.3, and the adaptive one.")]
pub struct Replay {
    /// Records of `bursar watch --always --record`
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// Samples in the moving averages (k)
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub width: u32,
    /// How far off the working set may be in one phase
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = rate)]
    pub wss_threshold: f64,
    /// Where the adaptive threshold begins
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = rate)]
    pub threshold: f64,
    /// Intervals off until a check, how many more after one that found nothing, and the most
    #[arg(long, value_name = "FIRST,STEP,MOST", default_value = "10,5,20", value_parser = checkpoint)]
    pub checkpoint: Checkpoint,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the tables and the time line of each record as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `bursar curve trace`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar curve trace requests.csv --key-column url --size-column size --bytes\n  \
    bursar curve trace big.oracleGeneral.zst --engine shards-size --json -\n  \
    bursar curve trace disk.vscsi --page 4K --window 10m --html page.html\n  \
    valgrind --tool=lackey --trace-mem=yes --log-file=a.lackey ./a.out; bursar curve trace a.lackey\n  \
    zcat pages.gz | bursar curve trace - --format csv --sizes 64K,256K,1M\n\n\
    gzip and zstd are seen from the first bytes. Sizes are objects, or with\n\
    --bytes bytes. shards-rate, shards-size and aet take bounded memory, exact\n\
    some 60 bytes per distinct object (112 with --bytes).")]
pub struct Trace {
    /// A trace; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// csv (any text with columns), oracle-general, vscsi or lackey [default: as the file's name says]
    #[arg(long, short, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Text: the column of what is referenced; a name in the first line, or a number from 1 where there is no such line
    #[arg(long, value_name = "COLUMN")]
    pub key_column: Option<Column>,
    /// Text: the column of its bytes
    #[arg(long, value_name = "COLUMN")]
    pub size_column: Option<Column>,
    /// Text: the column of the time in seconds
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<Column>,
    /// Text: the column of whose reference it is
    #[arg(long, value_name = "COLUMN")]
    pub tenant_column: Option<Column>,
    /// Cut references to addresses into pages of this size (lackey, vscsi) [default: 4KiB for lackey]
    #[arg(long, value_name = "SIZE", value_parser = page)]
    pub page: Option<u64>,
    /// Count malformed records and go on, instead of stopping at the first
    #[arg(long)]
    pub skip_bad: bool,
    /// How the curve is made
    #[arg(long, value_name = "ENGINE", default_value = "exact")]
    pub engine: Engine,
    /// With shards-rate: the share of objects to look at
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = rate)]
    pub rate: f64,
    /// With shards-size and aet: the objects to look at, at most
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(8..))]
    pub samples: u32,
    /// Count sizes in bytes, by the objects' sizes in the trace
    #[arg(long)]
    pub bytes: bool,
    /// Leave out the first N references, but for what they bring into the cache
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub warm_up: u64,
    /// A curve of each tenant, too, as if it had a cache for itself
    #[arg(long, conflicts_with = "window")]
    pub tenants: bool,
    /// A curve of each window of this length, too, such as 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub window: Option<Duration>,
    /// The working set is the least size that misses at most this share of the references
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = tolerance)]
    pub tolerance: f64,
    /// Give the curve at N sizes, evenly up to the largest that matters
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub points: u32,
    /// Give the curve at these sizes, such as 1000,2000 or 64M,1G
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', conflicts_with = "points")]
    pub sizes: Vec<Bytes>,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the curve's points as CSV to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the curve as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// How a curve is made.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Engine {
    /// Exact LRU stack distances of all objects
    Exact,
    /// Stack distances of a share of the objects (SHARDS)
    ShardsRate,
    /// Stack distances of a number of objects (SHARDS)
    ShardsSize,
    /// Reuse times of a number of objects (AET)
    Aet,
}

/// `bursar doctor`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar doctor\n  \
    sudo bursar doctor            what there is more with root\n  \
    sudo bursar doctor --repair   after bursar was killed\n\n\
    Without --repair nothing is changed.")]
pub struct Doctor {
    /// As JSON, on standard output
    #[arg(long)]
    pub json: bool,
    /// Undo what a killed run has left: cgroups, sysctls
    #[arg(long)]
    pub repair: bool,
}

/// `90`, `90s`, `500ms`, `5m`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    parsed.filter(|d| !d.is_zero()).ok_or_else(|| format!("'{text}' is not a time; write 90s, 500ms or 5m"))
}

/// `5%` or `0.05`.
fn fraction(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0).ok(),
        None => text.parse().ok(),
    }
}

fn share(text: &str) -> Result<f64, String> {
    fraction(text)
        .filter(|v| (0.001..=10.0).contains(v))
        .ok_or_else(|| format!("'{text}' is not a slow-down; write 5% or 0.05 (0.1 % to 1000 %)"))
}

fn rate(text: &str) -> Result<f64, String> {
    let share = fraction(text).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("'{text}' is not a share; write 1% or 0.01"))
}

fn tolerance(text: &str) -> Result<f64, String> {
    let share = fraction(text).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a share of the references; write 1% or 0.01"))
}

fn checkpoint(text: &str) -> Result<Checkpoint, String> {
    let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[first, step, most]) if first > 0 && most >= first => Ok(Checkpoint { first, step, most }),
        _ => Err(format!("'{text}' is not FIRST,STEP,MOST; write 10,5,20")),
    }
}

/// `hdf5=libhdf5*.so*`; the library is given all of them in one variable, whose marks names cannot have.
fn component(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, glob)| !name.is_empty() && !glob.is_empty() && !text.contains(';'));
    match parts {
        Some((name, _)) if name == "application" || model::lines::RESERVED.contains(&name) => {
            Err(format!("'{name}' has a meaning of its own; choose another name"))
        }
        Some((name, glob)) => Ok((name.into(), glob.into())),
        None => Err(format!("'{text}' is no component; write hdf5='libhdf5*.so*'")),
    }
}

fn some_bytes(text: &str) -> Result<Bytes, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    if bytes.0 > 0 { Ok(bytes) } else { Err("0 is no size for a pool; write 512M or 16G".to_string()) }
}

fn placement(text: &str) -> Result<Placement, String> {
    match text {
        "interleave" => Ok(Placement::Interleave),
        number => number
            .parse()
            .map(Placement::Node)
            .map_err(|_| format!("'{text}' is no node; write its number, such as 0, or interleave")),
    }
}

/// Octal, as for chmod.
fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("'{text}' is not the mode of a socket; write 0660 or 0666"))
}

fn page(text: &str) -> Result<u64, String> {
    let Bytes(bytes) = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    if bytes > 0 { Ok(bytes) } else { Err("a page has at least one byte; write 4K or 2M".to_string()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn portions_are_between_nothing_and_all() {
        assert_eq!((tolerance("0"), tolerance("1%"), rate("100%")), (Ok(0.0), Ok(0.01), Ok(1.0)));
        assert!(rate("0").is_err() && rate("101%").is_err() && tolerance("-1%").is_err() && tolerance("nan").is_err());
        assert_eq!((page("4K"), page("2MiB")), (Ok(4096), Ok(2 << 20)));
        assert!(page("0").unwrap_err().contains("write 4K"));
    }

    #[test]
    fn a_component_has_a_name_of_its_own_and_a_glob() {
        assert_eq!(component("hdf5=libhdf5*.so*"), Ok(("hdf5".into(), "libhdf5*.so*".into())));
        for wrong in ["hdf5", "=lib*", "hdf5=", "a=b;c=d"] {
            assert!(component(wrong).unwrap_err().contains("write hdf5="), "{wrong}");
        }
        assert!(component("application=lib*").unwrap_err().contains("another name"));
    }

    #[test]
    fn a_pool_has_a_size_a_place_and_a_mode() {
        assert_eq!((some_bytes("1G"), mode("0660")), (Ok(Bytes(1 << 30)), Ok(0o660)));
        assert_eq!((placement("1"), placement("interleave")), (Ok(Placement::Node(1)), Ok(Placement::Interleave)));
        assert!(some_bytes("0").unwrap_err().contains("write 512M") && some_bytes("much").is_err());
        assert!(placement("-1").unwrap_err().contains("interleave") && mode("0999").unwrap_err().contains("0660"));
    }

    #[test]
    fn checkpoints_are_three_numbers() {
        assert_eq!(checkpoint("10,5,20"), Ok(Checkpoint { first: 10, step: 5, most: 20 }));
        for wrong in ["10", "10,5", "0,5,20", "30,5,20", "a,b,c"] {
            assert!(checkpoint(wrong).unwrap_err().contains("write 10,5,20"), "{wrong}");
        }
    }

    #[test]
    fn times_and_shares_are_read_as_people_write_them() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0.05"), Ok(0.05));
        for wrong in ["", "soon", "-3s", "0"] {
            assert!(duration(wrong).unwrap_err().contains("write 90s"), "{wrong}");
        }
        for wrong in ["", "five", "-5%", "0", "nan"] {
            assert!(share(wrong).unwrap_err().contains("write 5%"), "{wrong}");
        }
    }
}
