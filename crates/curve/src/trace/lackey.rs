//! The output of `valgrind --tool=lackey --trace-mem=yes`: `I  04001000,3`, ` L 1ffeff,8`, ` S …`, ` M …`: instruction,
//! load, store, and load with store, with address (hexadecimal) and bytes. Lines of valgrind's own begin with `==` or
//! `--`.

use super::error::{Bad, Place, TraceError, shown};
use super::input::Input;
use super::lines::Lines;
use super::{Record, Records};

/// Reads this format.
pub struct Lackey(Lines, [String; 2]);

impl Lackey {
    pub fn new(input: Input) -> Lackey {
        Lackey(Lines::new(input), ["data".to_string(), "instructions".to_string()])
    }
}

impl Records for Lackey {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        while let Some((number, line)) = self.0.next()? {
            if line.is_empty() || line.starts_with(b"==") || line.starts_with(b"--") {
                continue;
            }
            return match access(line) {
                Some((tenant, key, bytes)) => {
                    Ok(Some(Record { key, bytes: Some(bytes), seconds: None, tenant: Some(tenant) }))
                }
                None => Err(Bad::at_line(number, format!("{} is no access of a lackey trace", shown(line)))),
            };
        }
        Ok(None)
    }

    /// The program's own output may be between the accesses, if it goes to the same file.
    fn bad_percent(&self) -> u64 {
        49
    }

    fn place(&self) -> Place {
        Place::Line(self.0.number())
    }

    fn tenants(&self) -> &[String] {
        &self.1
    }
}

/// (0 for data or 1 for an instruction, address, bytes).
pub fn access(line: &[u8]) -> Option<(u32, u64, u64)> {
    let line = std::str::from_utf8(line).ok()?;
    let rest = ["I  ", " L ", " S ", " M "].iter().find_map(|kind| line.strip_prefix(kind))?;
    let (address, bytes) = rest.split_once(',')?;
    Some((u32::from(line.starts_with('I')), u64::from_str_radix(address, 16).ok()?, bytes.trim_end().parse().ok()?))
}
