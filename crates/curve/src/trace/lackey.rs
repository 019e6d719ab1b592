//! What `valgrind --tool=lackey --trace-mem=yes` writes: `I  04001000,3`, ` L 1ffeff,8`, ` S …`, ` M …`: instruction, load, store,
//! and load with store, with address (hexadecimal) and bytes. Lines of valgrind's own begin with `==` or `--`.

use std::io::BufRead;

use super::error::{Bad, TraceError, shown};
use super::lines::Lines;
use super::{Record, Records};

/// Its reader.
pub struct Lackey(Lines);

impl Lackey {
    pub fn new(input: Box<dyn BufRead + Send>) -> Lackey {
        Lackey(Lines::new(input))
    }
}

impl Records for Lackey {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        while let Some((number, line)) = self.0.next()? {
            if line.is_empty() || line.starts_with(b"==") || line.starts_with(b"--") {
                continue;
            }
            return match access(line) {
                Some((key, bytes)) => Ok(Some(Record { key, bytes: Some(bytes), seconds: None, tenant: None })),
                None => Err(Bad::at_line(number, format!("{} is no access of a lackey trace", shown(line)))),
            };
        }
        Ok(None)
    }
}

/// Address and bytes.
fn access(line: &[u8]) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(line).ok()?;
    let rest = ["I  ", " L ", " S ", " M "].iter().find_map(|kind| line.strip_prefix(kind))?;
    let (address, bytes) = rest.split_once(',')?;
    Some((u64::from_str_radix(address, 16).ok()?, bytes.trim_end().parse().ok()?))
}
