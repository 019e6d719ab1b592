//! CSV as RFC 4180 has it, with line feeds.

use std::borrow::Cow;
use std::io::{self, Write};

use record::Record;

use crate::rows::{COLUMNS, rows, unit_name};

pub(crate) fn write(record: &Record, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for row in rows(record) {
        let (name, rung, unit) = (quoted(&row.series.name), quoted(&row.series.rung), unit_name(row.series.unit));
        let (pid, start_ticks) = match row.series.process {
            Some(process) => (process.pid.to_string(), process.start_ticks.to_string()),
            None => Default::default(),
        };
        writeln!(out, "{},{name},{unit},{pid},{start_ticks},{},{},{rung}", row.run, row.t_seconds, row.value)?;
    }
    Ok(())
}

/// A field, in quotation marks where it needs them.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_quotes_has_them() {
        assert_eq!(quoted("memory.stat"), "memory.stat");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
    }
}
