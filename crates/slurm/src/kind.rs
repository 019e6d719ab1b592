//! Which jobs are of one kind: names differ in what tells instances apart.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shape {
    /// What stands between the numbers, one more than there are numbers, with `*` for each id.
    between: Vec<String>,
    numbers: Vec<String>,
    /// The length of each id.
    ids: Vec<usize>,
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
        let shapes = with_doubtful_ids(jobs, shapes);
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
        Shape { between: vec![name], ..Shape::default() }
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
    let ids: Vec<Range<usize>> = ids(&job.name).filter(|id| is_sure(&job.name[id.clone()])).collect();
    shape_with(job, &ids)
}

/// Of a job in whose name these are ids.
fn shape_with(job: &PrintedJob, ids: &[Range<usize>]) -> Shape {
    let mut name = job.name.clone();
    for id in ids.iter().rev() {
        name.replace_range(id.clone(), "*");
    }
    let shape = if let Some(rule) = snakemake_rule(&job.comment) {
        let prefix = name.trim_matches(['*', '-', '_', '.', ' ']);
        let is_id = !ids.is_empty() && prefix.is_empty();
        Shape::known(if is_id || name == rule { rule.to_string() } else { format!("{name} {rule}") })
    } else if !ids.is_empty() && name == "*" {
        // Rules of one workflow differ in what they ask for at least.
        let asked = job
            .reserved_bytes
            .map_or("nothing known".into(), |bytes| model::Bytes(bytes / job.nodes.max(1)).to_string());
        let what = if job.name.len() == UUID_LENGTH { "UUID" } else { "ID" };
        Shape { is_nameless: true, ..Shape::known(format!("{what}, {} CPU, asked {asked}", job.cpus)) }
    } else if let Some(process) = nextflow_process(&name) {
        Shape::known(format!("{process}(*)"))
    } else {
        let (between, numbers) = numbers(&name);
        Shape { between, numbers, ..Shape::default() }
    };
    Shape { ids: ids.iter().map(Range::len).collect(), ..shape }
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

const UUID_LENGTH: usize = 36;

/// A UUID, a date with or without a time, or hexadecimal digits.
static ID: LazyLock<Regex> = LazyLock::new(|| {
    let uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
    let date = "(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])";
    let time = "[0-2][0-9][:.-]?[0-5][0-9](?:[:.-]?[0-5][0-9])?z?";
    let timestamp = format!("{date}(?:[t_-]{time})?|(?:19|20)[0-9]{{6}}t{time}");
    Regex::new(&format!("(?i){uuid}|{timestamp}|[0-9a-f]{{6,64}}")).expect("a fixed pattern")
});

/// What may be ids in a name: each begins and ends at a separator or an end of the name.
fn ids(name: &str) -> impl Iterator<Item = Range<usize>> {
    let is_apart = |id: &Range<usize>| {
        !name[..id.start].ends_with(char::is_alphanumeric) && !name[id.end..].starts_with(char::is_alphanumeric)
    };
    ID.find_iter(name).map(|found| found.range()).filter(is_apart)
}

/// Not what may as well be a word (`facade`), a number, or a word with a number (`decade1`): those have no digit before a letter. UUIDs and dates
/// have a `-`, or a `T` between digits.
fn is_sure(id: &str) -> bool {
    let from_digit = id.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    from_digit.contains(|c: char| !c.is_ascii_digit())
}

/// Hexadecimal digits may happen to be all digits, or letters before digits. Then they are an id where names that are alike but for it have a sure
/// id of that length there.
fn with_doubtful_ids(jobs: &[&PrintedJob], shapes: Vec<Shape>) -> Vec<Shape> {
    let sure: BTreeSet<(Vec<String>, Vec<usize>)> = shapes
        .iter()
        .filter(|shape| !shape.ids.is_empty())
        .map(|shape| (shape.between.clone(), shape.ids.clone()))
        .collect();
    let doubtful = |(job, shape): (&&PrintedJob, Shape)| {
        let all: Vec<Range<usize>> = if sure.is_empty() { Vec::new() } else { ids(&job.name).collect() };
        let with_one_more = all.iter().filter(|id| !is_sure(&job.name[(*id).clone()])).map(|doubtful| {
            let of_these = |id: &&Range<usize>| is_sure(&job.name[(*id).clone()]) || *id == doubtful;
            shape_with(job, &all.iter().filter(of_these).cloned().collect::<Vec<_>>())
        });
        let found = with_one_more.into_iter().find(|with| sure.contains(&(with.between.clone(), with.ids.clone())));
        found.unwrap_or(shape)
    };
    jobs.iter().zip(shapes).map(doubtful).collect()
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
            ("cromwell_008a05a6_align", "", "cromwell_*_align"),
            ("spawner-0198b94e", "", "spawner-*"),
            ("008a05a6", "rule_trim", "rule_trim"),
            ("nightly-2026-11-30", "", "nightly-*"),
            ("nightly_2026-11-30T21:31:05Z.sh", "", "nightly_*.sh"),
            ("run.20261130T2131", "", "run.*"),
            ("nf-ALIGN_(17)", "", "nf-ALIGN_(*)"),
            ("nf-RNASEQ_STAR_(WT_REP1)", "", "nf-RNASEQ_STAR_(*)"),
            ("nf-MULTIQC", "", "nf-MULTIQC"),
            ("solver", "a note of the user's", "solver"),
        ] {
            let found = kind(name, comment);
            assert_eq!((found.name.as_str(), found.is_guessed, found.is_nameless), (wanted, false, false), "{name}");
        }
        for (name, wanted) in [(UUID, "UUID, 1 CPU, asked"), ("008a05a6", "ID, 1 CPU, asked")] {
            let found = kind(name, "");
            assert!(found.is_nameless && found.name.starts_with(wanted), "{found:?}");
        }
    }

    #[test]
    fn ids_that_look_like_words_or_numbers_are_ids_beside_others() {
        let found =
            kinds(&["cromwell_008a05a6_qc", "cromwell_12345678_qc", "cromwell_deadbeef_qc", "cromwell_abc12345_qc"]);
        assert!(found.iter().all(|kind| kind.name == "cromwell_*_qc" && !kind.is_guessed), "{found:?}");
        let found = kinds(&["cromwell_008a05a6_s_7", "cromwell_12345678_s_8", "cromwell_f1234567_s_9"]);
        assert!(found.iter().all(|kind| kind.name == "cromwell_*_s_*" && kind.is_guessed), "{found:?}");
        assert_eq!(found[1].numbers, [8.0], "an id is no number that memory may go with");
        let found = kinds(&["build_facade", "build_decade", "build_008a05a6", "build_accede", "008a05a6_facade"]);
        let names: Vec<&str> = found.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(names, ["build_facade", "build_decade", "build_*", "build_accede", "*_facade"]);
        let found = kinds(&["decade1", "decade2", "decade3"]);
        assert_eq!((found[0].name.as_str(), found[0].is_guessed), ("decade*", true));
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
            ["facade", "decade"],
            ["facade1", "x008a05a6"],
            ["run-2026-13-30", "run-3026-11-30"],
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
