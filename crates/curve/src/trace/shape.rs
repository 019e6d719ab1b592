//! Recognises binary data and text, and the binary format, by the first bytes.

use super::binary::number;
use super::error::TraceError;
use super::format::{Columns, Format};
use super::lackey;
use super::magic::is_binary;

/// Number of lines searched for lackey's accesses, since valgrind writes other lines first.
const LACKEY_LINES: usize = 500;

/// The format of a trace that begins with `head`.
pub fn of(head: &[u8]) -> Result<Format, TraceError> {
    if is_binary(head) {
        return match (is_oracle_general(head), vscsi_record_bytes(head)) {
            (true, None) => Ok(Format::OracleGeneral),
            (false, Some(_)) => Ok(Format::Vscsi),
            (true, Some(_)) => {
                let what = "it may be oracle-general or vscsi; say which with --format";
                Err(TraceError::OtherFile(what.to_string()))
            }
            (false, None) => {
                let what = "it is binary data of no known kind, neither oracle-general nor vscsi; add --format, or decompress it first";
                Err(TraceError::OtherFile(what.to_string()))
            }
        };
    }
    Ok(if is_lackey(head) { Format::Lackey } else { Format::Csv(Columns::default()) })
}

/// Times that do not fall, sizes above 0 and below 2 GiB, next requests that come later or never.
fn is_oracle_general(head: &[u8]) -> bool {
    let mut last_time = 0;
    let mut records = head.chunks_exact(24);
    let are_records = records.by_ref().all(|record| {
        let (time, bytes) = (number::<4>(record, 0), number::<4>(record, 12));
        let next = number::<8>(record, 16) as i64;
        let is_next = (-2..1 << 40).contains(&next) || next == i64::MAX;
        let is_record = time >= last_time && bytes > 0 && bytes < 1 << 31 && is_next;
        last_time = time;
        is_record
    });
    are_records && head.len() >= 24
}

/// The record length, if all records begin as vscsi's do.
fn vscsi_record_bytes(head: &[u8]) -> Option<usize> {
    let all = |bytes: usize, version_at: usize, version: u8| {
        head.len() >= bytes && head.chunks_exact(bytes).all(|record| record[version_at] == version)
    };
    if all(40, 3, 2) {
        Some(40)
    } else if all(32, 15, 1) {
        Some(32)
    } else {
        None
    }
}

/// Whether there are more accesses than other lines among the first ones, apart from valgrind's own.
fn is_lackey(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"==") && !line.starts_with(b"--"));
    let (accesses, others): (Vec<_>, Vec<_>) =
        lines.take(LACKEY_LINES).partition(|line| lackey::access(line).is_some());
    accesses.len() > others.len()
}
