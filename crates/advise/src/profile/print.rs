//! A profile as text.

use std::fmt;

use super::{Mapping, Object, Profile, ProfiledRange, Program};

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "bursar profile 1")?;
        self.programs.iter().try_for_each(|program| program.fmt(f))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program {} {}", escaped(&self.name), self.build_id.as_deref().unwrap_or("-"))?;
        if let Some(command) = &self.command {
            writeln!(f, "command {}", command.replace(char::is_control, " "))?;
        }
        self.ranges.iter().try_for_each(|range| writeln!(f, "{range}"))
    }
}

impl fmt::Display for ProfiledRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}..{}", self.mapping, size(self.from), self.to.map_or("end".to_string(), size))?;
        if let Some(ns) = self.huge_ns {
            write!(f, " huge={ns}")?;
        }
        if let Some(ns) = self.eager_ns_per_mib {
            write!(f, " eager={ns}")?;
        }
        if let Some(share) = self.touched {
            write!(f, " touched={}", percent(share))?;
        }
        if self.confidence < 1.0 {
            write!(f, " sure={}", percent(self.confidence))?;
        }
        Ok(())
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u64>| number.map_or("*".to_string(), |number| number.to_string());
        let kind = self.kind();
        match self {
            Mapping::Heap | Mapping::Stack | Mapping::Object { object: None, .. } => write!(f, "{kind} - -"),
            Mapping::Mmap { class, ordinal } => {
                write!(f, "{kind} {} {}", number(class.map(u64::from)), number(*ordinal))
            }
            Mapping::Object { object: Some(object), .. } => write!(f, "{kind} {object} -"),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", escaped(&self.name), self.build_id.as_deref().unwrap_or("-"))
    }
}

/// Writes white space and backslashes as `\ooo`, as the kernel does in `/proc/self/mounts`.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_whitespace() || c.is_control() || c == '\\' || c == '#' {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| text.push_str(&format!("\\{byte:03o}")));
        } else {
            text.push(c);
        }
    }
    text
}

/// In the largest unit of which it is a multiple.
fn size(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = units.iter().find(|(shift, _)| bytes > 0 && bytes % (1 << shift) == 0);
    whole.map_or(bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// To a hundredth of a percent.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1e4).round() / 1e2)
}
