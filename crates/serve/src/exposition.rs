//! The two formats: Prometheus' text 0.0.4 and OpenMetrics 1.0.

use std::fmt::Write;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `text/plain; version=0.0.4`
    Text,
    /// `application/openmetrics-text; version=1.0.0`
    OpenMetrics,
}

/// What a metric's values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As it is now.
    Gauge,
    /// Counted up; its name ends in `_total`.
    Counter,
    /// Always 1, for its labels; its name ends in `_info`.
    Info,
}

/// Metrics of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// As it is asked for, suffix included.
    pub name: &'static str,
    /// What its values mean.
    pub kind: Kind,
    /// What they are, in one line.
    pub help: &'static str,
}

/// What is written of all families, one after the other.
pub struct Page {
    format: Format,
    text: String,
}

impl Format {
    /// For the `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Family {
    /// Its name in OpenMetrics, which leaves the suffix to the samples.
    fn stem(&self) -> &'static str {
        let suffix = match self.kind {
            Kind::Gauge => "",
            Kind::Counter => "_total",
            Kind::Info => "_info",
        };
        self.name.strip_suffix(suffix).unwrap_or(self.name)
    }

    /// Base units are in the name.
    fn unit(&self) -> Option<&'static str> {
        ["bytes", "seconds"].into_iter().find(|unit| self.stem().rsplit('_').next() == Some(unit))
    }
}

impl Page {
    /// An empty one.
    pub fn new(format: Format) -> Page {
        Page { format, text: String::new() }
    }

    /// Begins a family; what follows is of it.
    pub fn family(&mut self, family: &Family) {
        let is_open = self.format == Format::OpenMetrics;
        let name = if is_open { family.stem() } else { family.name };
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Info if is_open => "info",
            Kind::Gauge | Kind::Info => "gauge",
        };
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if let Some(unit) = family.unit().filter(|_| is_open) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", family.help);
    }

    /// A value; `labels` as [`label`] writes them, any number of lists of them.
    pub fn sample(&mut self, family: &Family, labels: &[&str], value: f64) {
        self.text.push_str(family.name);
        let mut labels = labels.iter().filter(|labels| !labels.is_empty()).peekable();
        if labels.peek().is_some() {
            let mut before = '{';
            for list in labels {
                self.text.push(before);
                self.text.push_str(list);
                before = ',';
            }
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// The end.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// `name="value"`, with what needs it escaped.
pub fn label(name: &str, value: &str) -> String {
    let mut text = format!("{name}=\"");
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALLED: Family = Family { name: "stalled_seconds_total", kind: Kind::Counter, help: "Time lost." };
    const BUILD: Family = Family { name: "build_info", kind: Kind::Info, help: "Which." };

    fn page(format: Format) -> String {
        let mut page = Page::new(format);
        page.family(&STALLED);
        page.sample(&STALLED, &["", &label("cgroup", "/a\\x2d\"b\"\n"), &label("of", "io")], 0.5);
        page.family(&BUILD);
        page.sample(&BUILD, &[], 1.0);
        page.finish()
    }

    #[test]
    fn openmetrics_has_units_and_an_end_and_names_without_suffixes() {
        let expected = "# TYPE stalled_seconds counter\n# UNIT stalled_seconds seconds\n# HELP stalled_seconds Time lost.\n\
            stalled_seconds_total{cgroup=\"/a\\\\x2d\\\"b\\\"\\n\",of=\"io\"} 0.5\n\
            # TYPE build info\n# HELP build Which.\nbuild_info 1\n# EOF\n";
        assert_eq!(page(Format::OpenMetrics), expected);
    }

    #[test]
    fn text_names_the_samples_in_full() {
        let expected = "# TYPE stalled_seconds_total counter\n# HELP stalled_seconds_total Time lost.\n\
            stalled_seconds_total{cgroup=\"/a\\\\x2d\\\"b\\\"\\n\",of=\"io\"} 0.5\n\
            # TYPE build_info gauge\n# HELP build_info Which.\nbuild_info 1\n";
        assert_eq!(page(Format::Text), expected);
    }
}
