//! Which jobs are of one kind: names differ in what tells instances apart.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::accounting::PrintedJob;
use crate::error::Error;

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
    /// With `*` for what tells its instances apart.
    pub name: String,
    /// There are several names of this kind, which differ in numbers alone.
    pub is_guessed: bool,
    /// The numbers in the job's name that tell the names of its kind apart, in the order of the name.
    pub numbers: Vec<f64>,
    /// Nothing names it: jobs of one request stand together.
    pub is_nameless: bool,
}

/// A job's name or kind, cut at the numbers that may tell instances apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    /// What stands between the numbers, one more than there are numbers.
    between: Vec<String>,
    numbers: Vec<String>,
    is_nameless: bool,
}

/// The numbers of all names of one shape.
type Names<'a> = BTreeSet<&'a [String]>;

/// Fewer names are kinds of their own: `h264` and `h265`, or `v1` and `v2`, may as well be different jobs.
const FEWEST_NAMES: usize = 3;

/// What names are called that are nothing but a number. A lone `*` would read as all jobs.
const NUMBERS_ALONE: &str = "(numbers)";

impl By {
    /// From what the user wrote: a column of Slurm's by its name, else a regular expression.
    pub fn of(text: Option<&str>) -> Result<By, Error> {
        let Some(text) = text else { return Ok(By::Kind) };
        if text.is_empty() {
            return Err(Error::NoKind);
        }
        if COLUMNS.contains(&text.to_ascii_lowercase().as_str()) {
            return Ok(By::Column(text.to_ascii_lowercase()));
        }
        Regex::new(text).map(By::Pattern).map_err(|error| Error::Kind(text.into(), error))
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

    /// The kind of each of these jobs. Names are of one kind if they differ in numbers alone, and are at least [`FEWEST_NAMES`].
    pub fn kinds(&self, jobs: &[&PrintedJob]) -> Vec<Kind> {
        let shapes: Vec<Shape> = jobs.iter().map(|job| self.shape(job)).collect();
        // Of each kind and each component of a heterogeneous job.
        let mut names: BTreeMap<(&[String], u64), Names<'_>> = BTreeMap::new();
        for (job, shape) in jobs.iter().zip(&shapes) {
            names.entry((&shape.between, job.component)).or_default().insert(&shape.numbers);
        }
        let differ: BTreeMap<(&[String], u64), Vec<bool>> =
            names.into_iter().map(|(shape, names)| (shape, differing(&names))).collect();
        let kind = |(job, shape): (&&PrintedJob, &Shape)| {
            let differ = differ.get(&(&shape.between[..], job.component)).map_or(&[][..], Vec::as_slice);
            shape.kind(differ, job.component)
        };
        jobs.iter().zip(&shapes).map(kind).collect()
    }

    fn shape(&self, job: &PrintedJob) -> Shape {
        match self {
            By::Kind => shape_of(job),
            By::Column(_) => {
                Shape::known(job.by.clone().filter(|value| !value.is_empty()).unwrap_or_else(|| "-".into()))
            }
            By::Pattern(pattern) => Shape::known(match pattern.captures(&job.name) {
                None => job.name.clone(),
                Some(found) if found.len() == 1 => found[0].to_string(),
                Some(found) => found.iter().skip(1).flatten().map(|group| group.as_str()).collect::<Vec<_>>().join(" "),
            }),
        }
    }
}

impl Shape {
    /// A kind that needs no guess.
    fn known(name: String) -> Shape {
        Shape { between: vec![name], numbers: Vec::new(), is_nameless: false }
    }

    /// Numbers that do not differ stay as they are.
    fn kind(&self, differ: &[bool], component: u64) -> Kind {
        let mut name = String::new();
        for (at, between) in self.between.iter().enumerate() {
            name += between;
            match (self.numbers.get(at), differ.get(at)) {
                (Some(_), Some(true)) => name.push('*'),
                (Some(number), _) => name += number,
                (None, _) => {}
            }
        }
        if name == "*" && differ.contains(&true) {
            name = NUMBERS_ALONE.to_string();
        }
        if component > 0 {
            name += &format!(" (component {component})");
        }
        let differing = self.numbers.iter().zip(differ).filter(|(_, differs)| **differs);
        // Digits are always a number; one that is too large for `f64` is infinite.
        let numbers = differing.filter_map(|(number, _)| number.parse().ok()).collect();
        Kind { name, is_guessed: differ.contains(&true), numbers, is_nameless: self.is_nameless }
    }
}

/// Which of the numbers differ between the names; none, if there are too few names.
fn differing(names: &Names<'_>) -> Vec<bool> {
    let Some(first) = names.first() else { return Vec::new() };
    let differs = |at: usize| names.len() >= FEWEST_NAMES && names.iter().any(|numbers| numbers[at] != first[at]);
    (0..first.len()).map(differs).collect()
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

fn shape_of(job: &PrintedJob) -> Shape {
    let (name, had_uuid) = without_uuids(&job.name);
    if let Some(rule) = snakemake_rule(&job.comment) {
        let prefix = name.trim_matches(['*', '-', '_', '.', ' ']);
        let is_uuid = had_uuid && prefix.is_empty();
        return Shape::known(if is_uuid || name == rule { rule.to_string() } else { format!("{name} {rule}") });
    }
    if had_uuid && name == "*" {
        // Rules of one workflow differ in what they ask for at least.
        let asked = job
            .reserved_bytes
            .map_or("nothing known".into(), |bytes| model::Bytes(bytes / job.nodes.max(1)).to_string());
        return Shape { is_nameless: true, ..Shape::known(format!("UUID, {} CPU, asked {asked}", job.cpus)) };
    }
    if had_uuid {
        return Shape::known(name);
    }
    if let Some(process) = nextflow_process(&name) {
        return Shape::known(format!("{process}(*)"));
    }
    let (between, numbers) = numbers(&name);
    Shape { between, numbers, is_nameless: false }
}

/// The numbers in a name that may tell instances apart: those that end at its end or at a separator, as of `chr1`, `align_001.sh`, `task[3]`,
/// `lr_0.25` and `s-12-map`. First what stands between them.
fn numbers(name: &str) -> (Vec<String>, Vec<String>) {
    let (mut between, mut numbers, mut kept) = (Vec::new(), Vec::new(), String::new());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let length = number_length(rest);
        // Else all digits of what is no number, or one other character.
        let used = [length, digits(rest), first.len_utf8()].into_iter().find(|used| *used > 0).unwrap_or(rest.len());
        let (part, after) = rest.split_at(used);
        if length > 0 {
            between.push(std::mem::take(&mut kept));
            numbers.push(part.to_string());
        } else {
            kept.push_str(part);
        }
        rest = after;
    }
    between.push(kept);
    (between, numbers)
}

fn digits(text: &str) -> usize {
    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len()
}

/// How much of the text is a number, with decimals if it has some; 0: it does not begin with one that ends at a separator.
fn number_length(text: &str) -> usize {
    let ends = |at: usize| !text[at..].starts_with(char::is_alphanumeric);
    let whole = digits(text);
    let decimals = text[whole..].strip_prefix('.').map_or(0, digits);
    match (whole, decimals) {
        (0, _) => 0,
        (_, 1..) if ends(whole + 1 + decimals) => whole + 1 + decimals,
        _ if ends(whole) => whole,
        _ => 0,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::job;

    fn kind(name: &str, comment: &str) -> Kind {
        let job = PrintedJob { name: name.into(), comment: comment.into(), ..job() };
        By::Kind.kinds(&[&job]).remove(0)
    }

    fn kinds(names: &[&str]) -> Vec<Kind> {
        let jobs: Vec<PrintedJob> = names.iter().map(|name| PrintedJob { name: (*name).into(), ..job() }).collect();
        By::Kind.kinds(&jobs.iter().collect::<Vec<_>>())
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
    fn names_that_differ_in_numbers_alone_are_one_kind() {
        for (one, other, wanted, first_numbers) in [
            ("sim_17", "sim_18", "sim_*", Some(17.0)),
            ("sim-17", "sim-2", "sim-*", Some(17.0)),
            ("run42", "run7", "run*", Some(42.0)),
            ("train.3", "train.30", "train.*", Some(3.0)),
            ("align_001", "align_100", "align_*", Some(1.0)),
            ("chr1", "chr22", "chr*", Some(1.0)),
            ("chr1.impute", "chr2.impute", "chr*.impute", Some(1.0)),
            ("s_3_map", "s_12_map", "s_*_map", Some(3.0)),
            ("001-fastqc", "002-fastqc", "*-fastqc", Some(1.0)),
            ("sim-20260501-1200", "sim-20260501-1300", "sim-20260501-*", Some(1200.0)),
            ("sim-20260501-1200", "sim-20260502-1300", "sim-*-*", Some(20260501.0)),
            ("lr_0.25", "lr_0.5", "lr_*", Some(0.25)),
            ("v1.2_rep1", "v1.2_rep2", "v1.2_rep*", Some(1.0)),
            ("K=3", "K=30", "K=*", Some(3.0)),
            ("task(12)", "task(13)", "task(*)", Some(12.0)),
            ("task[3]", "task[4]", "task[*]", Some(3.0)),
            ("run_7.sh", "run_8.sh", "run_*.sh", Some(7.0)),
            ("1234", "5678", "(numbers)", Some(1234.0)),
            ("é1", "é2", "é*", Some(1.0)),
        ] {
            let third = third(one, other);
            let found = kinds(&[one, other, &third, "solver"]);
            assert_eq!([&found[0].name, &found[1].name, &found[2].name], [wanted; 3], "{one} {other} {third}");
            assert!(found[0].is_guessed && !found[0].is_nameless, "{found:?}");
            assert_eq!(found[0].numbers.first().copied(), first_numbers, "{one}");
            assert_eq!(found[3], Kind { name: "solver".into(), ..Kind::default() });
        }
    }

    /// A name with other numbers where those of the two differ.
    fn third(one: &str, other: &str) -> String {
        let ((between, ones), (_, others)) = (numbers(one), numbers(other));
        let number = |at: usize| {
            let end = if ones[at] == others[at] { "" } else { "7" };
            format!("{}{end}", others[at])
        };
        (0..ones.len()).map(|at| format!("{}{}", between[at], number(at))).collect::<String>() + &between[ones.len()]
    }

    #[test]
    fn all_numbers_that_differ_are_kept_in_their_order() {
        let found = kinds(&["s1_k21_v2", "s2_k33_v2", "s3_k21_v2"]);
        assert_eq!((found[1].name.as_str(), &found[1].numbers), ("s*_k*_v2", &vec![2.0, 33.0]));
    }

    #[test]
    fn other_names_are_kinds_of_their_own() {
        for names in [
            ["sim_17", "sim_17"],
            ["h264", "h265"],
            ["v1", "v2"],
            ["sim_17", "sim_18"],
            ["1234", "5678"],
            ["sim_17", "simulate_17"],
            ["step1_align", "step2_sort"],
            ["bwa", "bwa2"],
            ["k3b", "k4b"],
            ["0x1f", "0x2f"],
            ["", "1"],
            ["é", "è"],
        ] {
            for (found, name) in kinds(&names).into_iter().zip(names) {
                assert_eq!(found, Kind { name: name.into(), ..Kind::default() });
            }
        }
    }

    #[test]
    fn the_user_may_say_what_a_kind_is() {
        let of = |by: &str, name: &str| {
            let job = PrintedJob { name: name.into(), by: Some("physics".into()), ..job() };
            By::of(Some(by)).unwrap().kinds(&[&job]).remove(0).name
        };
        assert_eq!(of("^(\\w+)-", "align-7-x"), "align");
        assert_eq!(of("^(\\w+)-\\d-(\\w)", "align-7-x"), "align x");
        assert_eq!(of("align", "align-7-x"), "align");
        assert_eq!(of("^sort", "align-7-x"), "align-7-x");
        assert_eq!(of("Account", "align-7-x"), "physics");
        assert!(By::of(Some("(")).is_err() && By::of(Some("")).is_err());
    }
}
