//! The command line of `bursar curve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use curve::trace::{Column, Format, TimeUnit};
use model::Bytes;

use super::ADVANCED;
use super::values::{duration, page, rate, tolerance};

/// `bursar curve`
#[derive(Debug, Subcommand)]
pub enum Curve {
    /// The miss ratio curve of a trace of references
    Trace(Box<Trace>),
}

/// `bursar curve trace`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar curve trace requests.csv --key-column url --size-column size --bytes\n  \
    bursar curve trace big.oracleGeneral.zst --engine shards-size --json -\n  \
    bursar curve trace disk.vscsi --page 4K --window 10m --html page.html\n  \
    valgrind --tool=lackey --trace-mem=yes --log-file=a.lackey ./a.out; bursar curve trace a.lackey\n  \
    zcat pages.gz | bursar curve trace - --format csv --sizes 64K,256K,1M\n\n\
    The first bytes say whether the file is compressed: gzip, zstd, xz, lzma, lzip,\n\
    bzip2, lz4 and framed snappy are read. Sizes are objects, or with\n\
    --bytes bytes. shards-rate, shards-size and aet take bounded memory, exact\n\
    some 60 bytes per distinct object (112 with --bytes).")]
pub struct Trace {
    /// A trace; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// auto (recognised by the file's content), csv (any text with columns), oracle-general, vscsi, lackey, or a published
    /// layout: msr, spc, alibaba, twitter, ibm-cos, wiki-cdn, cloudphysics [default: by the file's name, or auto]
    #[arg(long, short, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Text: the column of the keys, by its name in the first line, or by its number from 1 without such a line
    #[arg(long, value_name = "COLUMN", hide_short_help = true, help_heading = ADVANCED)]
    pub key_column: Option<Column>,
    /// Text: the column of the objects' sizes in bytes
    #[arg(long, value_name = "COLUMN", hide_short_help = true, help_heading = ADVANCED)]
    pub size_column: Option<Column>,
    /// Text: the column of the time: a number, or ISO 8601
    #[arg(long, value_name = "COLUMN", hide_short_help = true, help_heading = ADVANCED)]
    pub time_column: Option<Column>,
    /// Text: the unit of the times: s, ms, us, 100ns or ns [default: the layout's, or as the column's name ends, or s]
    #[arg(long, value_name = "UNIT", hide_short_help = true, help_heading = ADVANCED)]
    pub time_unit: Option<TimeUnit>,
    /// Text: the column of the tenants
    #[arg(long, value_name = "COLUMN", hide_short_help = true, help_heading = ADVANCED)]
    pub tenant_column: Option<Column>,
    /// Cut references to addresses into pages of this size [default: 4KiB for lackey, msr, spc, alibaba, and text with
    /// columns offset and size]
    #[arg(long, value_name = "SIZE", value_parser = page, hide_short_help = true, help_heading = ADVANCED)]
    pub page: Option<u64>,
    /// Count malformed records and continue, however many there are [default: at most 1 % of the lines of a text]
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub skip_bad: bool,
    /// How the curve is computed
    #[arg(long, value_name = "ENGINE", default_value = "exact", hide_short_help = true, help_heading = ADVANCED)]
    pub engine: Engine,
    /// With shards-rate: share of the objects that are sampled
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = rate, hide_short_help = true, help_heading = ADVANCED)]
    pub rate: f64,
    /// With shards-size and aet: objects that are sampled, at most
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(8..), hide_short_help = true, help_heading = ADVANCED)]
    pub samples: u32,
    /// Measure cache sizes in bytes, by the objects' sizes in the trace
    #[arg(long)]
    pub bytes: bool,
    /// Do not count the first N references; they only fill the cache
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true, help_heading = ADVANCED)]
    pub warm_up: u64,
    /// Also a curve of each tenant, with a cache of its own; of lackey, data and instructions apart
    #[arg(long, conflicts_with = "window", hide_short_help = true, help_heading = ADVANCED)]
    pub tenants: bool,
    /// Also a curve of each window of this length, such as 10m
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true, help_heading = ADVANCED)]
    pub window: Option<Duration>,
    /// The working set is the smallest size that misses at most this share of the references; of lackey, the smallest
    /// size that fetches again at most this share of the pages
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = tolerance, hide_short_help = true, help_heading = ADVANCED)]
    pub tolerance: f64,
    /// Print the curve at N sizes, evenly spaced up to the largest with an effect
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000), hide_short_help = true, help_heading = ADVANCED)]
    pub points: u32,
    /// Print the curve at these sizes, such as 1000,2000 or 64M,1G
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', conflicts_with = "points", hide_short_help = true, help_heading = ADVANCED)]
    pub sizes: Vec<Bytes>,
    /// Write the figures as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the curve's points as CSV to FILE, or to standard output with -
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = ADVANCED)]
    pub csv: Option<PathBuf>,
    /// Write the curve as one HTML page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// How a curve is computed.
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
