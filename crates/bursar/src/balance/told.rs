//! Where intervals are told: as a table, and as JSON.

use std::io::Write;

use history::input::is_dash;
use live::JsonLines;
use report::balance::{Interval, table};
use session::say;

use crate::cli::balance::Balance;

/// Where.
pub struct Told {
    lines: Option<Box<dyn Write>>,
    json: Option<JsonLines>,
    dry_run: bool,
}

impl Told {
    /// The table goes to standard error where JSON goes to standard output.
    pub fn to(options: &Balance) -> anyhow::Result<Told> {
        let json = options.json.as_deref().map(JsonLines::to).transpose()?;
        let lines: Option<Box<dyn Write>> = match options.json.as_deref().is_some_and(is_dash) {
            _ if options.quiet => None,
            true => Some(Box::new(say::Beside)),
            false => Some(Box::new(say::Lines::open()?)),
        };
        Ok(Told { lines, json, dry_run: options.dry_run })
    }

    /// An interval.
    pub fn tell(&mut self, interval: &Interval) -> anyhow::Result<()> {
        if let Some(json) = &mut self.json {
            json.write(interval)?;
        }
        if let Some(lines) = &mut self.lines {
            lines.write_all(table(interval, self.dry_run).as_bytes())?;
        }
        Ok(())
    }
}
