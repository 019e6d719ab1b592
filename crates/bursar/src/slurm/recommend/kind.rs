//! Which jobs are of one kind: names differ in what tells instances apart.

use anyhow::{Context, bail};
use regex::Regex;

use super::accounting::PrintedJob;

/// How jobs are grouped.
#[derive(Clone, Debug)]
pub enum By {
    /// By their name and what is known of workflow managers.
    Kind,
    /// By the value of a column of the input.
    Column(String),
    /// By what the pattern finds in their name.
    Pattern(Regex),
}

/// What a job is an instance of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kind {
    pub name: String,
    /// Only a number at the end of the name tells its instances apart.
    pub is_guessed: bool,
    /// Nothing names it: jobs of one request stand together.
    pub is_nameless: bool,
}

/// File endings that a job's name may have from its script.
const ENDINGS: [&str; 8] = [".sh", ".slurm", ".sbatch", ".job", ".bash", ".py", ".R", ".cmd"];

impl By {
    /// From what the user wrote: a column of Slurm's by its name, else a regular expression.
    pub fn of(text: Option<&str>) -> anyhow::Result<By> {
        let Some(text) = text else { return Ok(By::Kind) };
        if text.is_empty() {
            bail!("--by is empty: give a column of sacct, such as Comment, or a regular expression for job names");
        }
        if COLUMNS.contains(&text.to_ascii_lowercase().as_str()) {
            return Ok(By::Column(text.to_ascii_lowercase()));
        }
        let pattern = Regex::new(text)
            .with_context(|| format!("--by {text} is neither a column of sacct nor a regular expression"))?;
        Ok(By::Pattern(pattern))
    }

    /// The column whose value is to be kept.
    pub fn column(&self) -> Option<&str> {
        match self {
            By::Column(name) => Some(name),
            _ => None,
        }
    }

    /// The pattern, if it finds nothing in the name of any job: then it was meant for something else.
    pub fn finds_nothing(&self, jobs: &[PrintedJob]) -> Option<&Regex> {
        match self {
            By::Pattern(pattern) if !jobs.iter().any(|job| pattern.is_match(&job.name)) => Some(pattern),
            _ => None,
        }
    }

    pub fn kind(&self, job: &PrintedJob) -> Kind {
        let known = |name: String| Kind { name, ..Kind::default() };
        match self {
            By::Kind => kind_of(job),
            By::Column(_) => known(job.by.clone().filter(|value| !value.is_empty()).unwrap_or_else(|| "-".into())),
            By::Pattern(pattern) => known(match pattern.captures(&job.name) {
                None => job.name.clone(),
                Some(found) if found.len() == 1 => found[0].to_string(),
                Some(found) => found.iter().skip(1).flatten().map(|group| group.as_str()).collect::<Vec<_>>().join(" "),
            }),
        }
    }
}

/// Columns that jobs may be grouped by, in lower case.
pub const COLUMNS: [&str; 14] = [
    "jobname",
    "comment",
    "account",
    "user",
    "partition",
    "qos",
    "wckey",
    "cluster",
    "submitline",
    "workdir",
    "group",
    "reservation",
    "constraints",
    "container",
];

fn kind_of(job: &PrintedJob) -> Kind {
    let (name, had_uuid) = without_uuids(&job.name);
    if let Some(rule) = snakemake_rule(&job.comment) {
        let prefix = name.trim_matches(['*', '-', '_', '.', ' ']);
        let is_uuid = had_uuid && prefix.is_empty();
        let name = if is_uuid || name == rule { rule.to_string() } else { format!("{name} {rule}") };
        return Kind { name, ..Kind::default() };
    }
    if had_uuid && name == "*" {
        // Rules of one workflow differ in what they ask for at least.
        let asked = job
            .reserved_bytes
            .map_or("nothing known".into(), |bytes| model::Bytes(bytes / job.nodes.max(1)).to_string());
        return Kind { name: format!("UUID, {} CPU, asked {asked}", job.cpus), is_guessed: false, is_nameless: true };
    }
    if had_uuid {
        return Kind { name, ..Kind::default() };
    }
    if let Some(process) = nextflow_process(&name) {
        return Kind { name: format!("{process}(*)"), ..Kind::default() };
    }
    match without_number(&name) {
        Some(name) => Kind { name, is_guessed: true, is_nameless: false },
        None => Kind { name, ..Kind::default() },
    }
}

/// `rule_NAME` of `rule_NAME_wildcards_…`.
fn snakemake_rule(comment: &str) -> Option<&str> {
    let rest = comment.trim().trim_matches(['"', '\'']);
    let name = rest.strip_prefix("rule_")?;
    let name = name.split("_wildcards_").next().unwrap_or(name).trim_end_matches("_wildcards").trim();
    (!name.is_empty()).then(|| &rest[..5 + name.len()])
}

/// `nf-NAME_` of `nf-NAME_(TAG)`.
fn nextflow_process(name: &str) -> Option<&str> {
    let at = name.find('(')?;
    (name.starts_with("nf-") && name.ends_with(')')).then(|| &name[..at])
}

/// With `*` for each UUID, and whether there was one.
fn without_uuids(name: &str) -> (String, bool) {
    let (mut kept, mut rest, mut found) = (String::new(), name, false);
    while let Some(first) = rest.chars().next() {
        let is_at_word = !kept.ends_with(|c: char| c.is_ascii_alphanumeric());
        if is_at_word && is_uuid(rest) {
            kept.push('*');
            rest = &rest[36..];
            found = true;
        } else {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    (kept, found)
}

/// Whether the text begins with one: 8, 4, 4, 4 and 12 hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
        && bytes.get(36).is_none_or(|next| !next.is_ascii_alphanumeric())
}

/// With `*` for the numbers at its end, which may stand in brackets or before the ending of a script.
fn without_number(name: &str) -> Option<String> {
    let ending = ENDINGS.iter().find(|ending| name.ends_with(*ending)).copied().unwrap_or("");
    let mut stem = &name[..name.len() - ending.len()];
    let mut closing = String::new();
    while let Some(rest) = stem.strip_suffix([')', ']', '}']) {
        closing.insert_str(0, &stem[rest.len()..]);
        stem = rest;
    }
    let mut kept = stem;
    loop {
        let without = kept.trim_end_matches(|c: char| c.is_ascii_digit());
        if without.len() == kept.len() {
            break;
        }
        // `sim-20260501-1200` and `x_0.25` have several.
        let before = without.trim_end_matches(['-', '_', '.', ':', ',', '#']);
        let goes_on = before.ends_with(|c: char| c.is_ascii_digit());
        kept = if goes_on { before } else { without };
        if !goes_on {
            break;
        }
    }
    (kept.len() < stem.len()).then(|| format!("{kept}*{closing}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::job;
    use super::*;

    fn kind(name: &str, comment: &str) -> Kind {
        By::Kind.kind(&PrintedJob { name: name.into(), comment: comment.into(), ..job() })
    }

    #[test]
    fn names_of_workflow_managers_are_kinds() {
        const UUID: &str = "e94f44ef-c1bf-466b-9406-537b0e9afa76";
        for (name, comment, wanted) in [
            (UUID, "rule_trim_wildcards_sample=A,unit=1", "rule_trim"),
            (UUID, "rule_trim", "rule_trim"),
            (UUID, "\"rule_all_reads_wildcards_\"", "rule_all_reads"),
            (&format!("mine-{UUID}"), "rule_trim", "mine-* rule_trim"),
            (&format!("cromwell_{UUID}_align"), "", "cromwell_*_align"),
            ("nf-ALIGN_(17)", "", "nf-ALIGN_(*)"),
            ("nf-RNASEQ_STAR_(WT_REP1)", "", "nf-RNASEQ_STAR_(*)"),
            ("nf-MULTIQC", "", "nf-MULTIQC"),
            ("solver", "a note of the user's", "solver"),
        ] {
            let found = kind(name, comment);
            assert_eq!((found.name.as_str(), found.is_guessed, found.is_nameless), (wanted, false, false), "{name}");
        }
        assert!(kind(UUID, "").is_nameless && kind(UUID, "").name.contains("asked"));
    }

    #[test]
    fn numbers_at_the_end_are_instances() {
        for (name, wanted) in [
            ("sim_17", "sim_*"),
            ("sim17", "sim*"),
            ("sim-20260501-1200", "sim-*"),
            ("x_0.25", "x_*"),
            ("task(12)", "task(*)"),
            ("task[3]", "task[*]"),
            ("run_7.sh", "run_*.sh"),
            ("1234", "*"),
        ] {
            assert_eq!(kind(name, ""), Kind { name: wanted.into(), is_guessed: true, is_nameless: false }, "{name}");
        }
        for name in ["solver", "12_months", "a(b)", "", "é"] {
            assert_eq!(kind(name, ""), Kind { name: name.into(), ..Kind::default() });
        }
    }

    #[test]
    fn the_user_may_say_what_a_kind_is() {
        let of = |by: &str, name: &str| {
            let job = PrintedJob { name: name.into(), by: Some("physics".into()), ..job() };
            By::of(Some(by)).unwrap().kind(&job).name
        };
        assert_eq!(of("^(\\w+)-", "align-7-x"), "align");
        assert_eq!(of("^(\\w+)-\\d-(\\w)", "align-7-x"), "align x");
        assert_eq!(of("align", "align-7-x"), "align");
        assert_eq!(of("^sort", "align-7-x"), "align-7-x");
        assert_eq!(of("Account", "align-7-x"), "physics");
        assert!(By::of(Some("(")).is_err() && By::of(Some("")).is_err());
    }
}
