//! The text that memnesia writes (Gutierrez et al., 2018) and its scripts read: for each rank a head, then its memory
//! by PSS over time, of MPI and of all.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use model::{Attribution, Observation, RankUse, Series, Share, line_name, lines};
use record::Record;

const MIB: f64 = (1u64 << 20) as f64;
/// Where memnesia names the function that it looked around.
const TRIGGER: &str = "bursar";

/// Of several runs, the last.
pub(crate) fn write(record: &Record, attribution: &Attribution, out: &mut impl Write) -> io::Result<()> {
    let run = record.runs.iter().find(|run| run.run == attribution.run);
    let unix_ns = run.map_or(record.header.started_unix_ns, |run| run.started_unix_ns);
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(unix_ns)).to_string();
    let time = time.replace(['-', ':', 'Z'], "").replace('T', "-");
    for (number, rank) in attribution.per_rank.iter().enumerate() {
        let begin_ns = rank.init.map_or(0, |init| (init.begin_seconds * 1e9) as u64);
        let of = |line: &str| run.map_or_else(Vec::new, |run| points(run, rank, line, begin_ns));
        let (mpi, all) = (of("mpi"), of(lines::TOTAL));
        let largest = |points: &[(f64, f64)]| points.iter().map(|(_, mib)| *mib).fold(0.0, f64::max);
        writeln!(out, "# [Run Info Begin]")?;
        for (key, value) in [
            ("Report Date Time", time.clone()),
            ("Application Name", word(rank.command.rsplit('/').next().unwrap_or_default())),
            ("Hostname", word(&rank.host)),
            ("MPI_COMM_WORLD Rank", rank.rank.unwrap_or(number as u32).to_string()),
            ("MPI_COMM_WORLD Size", attribution.ranks.to_string()),
            ("MPI Init Time (s)", rank.init.map_or(0.0, |init| init.end_seconds - init.begin_seconds).to_string()),
            ("Number of smaps Captures Performed", all.len().to_string()),
            ("High Memory Usage Watermark (MPI) (MB)", format!("{:.6}", largest(&mpi))),
            ("High Memory Usage Watermark (Application + MPI) (MB)", format!("{:.6}", largest(&all))),
        ] {
            writeln!(out, "# {key}: {value}")?;
        }
        writeln!(out, "# [Run Info End]")?;
        for (name, title, points) in [("MPI", "MPI Library", mpi), ("ALL", "Application", all)] {
            writeln!(out, "# {title} Memory Usage (MB) Over Time (Since MPI_Init):")?;
            for (seconds, mib) in points {
                writeln!(out, "{name}_MEM_USAGE {TRIGGER} {seconds:.6} {mib:.6}")?;
            }
        }
    }
    Ok(())
}

/// Seconds since `MPI_Init` and MiB, a point before and one after every change, as its plots join them by straight lines.
fn points(run: &Observation, rank: &RankUse, line: &str, begin_ns: u64) -> Vec<(f64, f64)> {
    let name = line_name(line, None, Share::Proportional);
    let of_rank = |series: &&Series| {
        series.name == name
            && series.process.is_some_and(|key| (key.pid, key.start_ticks) == (rank.pid, rank.start_ticks))
    };
    let Some(series) = run.series.iter().find(of_rank) else { return Vec::new() };
    let mut before = series.at(begin_ns).unwrap_or(0.0) / MIB;
    let mut points = vec![(0.0, before)];
    for (t_ns, bytes) in series.points.iter().filter(|(t_ns, _)| *t_ns > begin_ns) {
        let (seconds, mib) = ((t_ns - begin_ns) as f64 / 1e9, bytes / MIB);
        points.extend([(seconds, before), (seconds, mib)]);
        before = mib;
    }
    points
}

/// As a value of the head may be: the scripts split it at colons.
fn word(text: &str) -> String {
    text.chars().map(|c| if c == ':' || c.is_control() { '_' } else { c }).collect()
}
