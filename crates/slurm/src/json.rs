//! What `sacct --json` prints, of Slurm 21.08 and later.
//!
//! Its form follows the site's data_parser. The same figure is a number in one version and `{"set": …, "infinite": …, "number": …}` in the next,
//! a state a word or a list of words, and what the job asked for `memory` or `memory_per_cpu` and `memory_per_node`. So each job is read by its
//! paths, and one that cannot be read is left out alone.

use std::fmt;

use model::MemoryPer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::accounting::{Printed, PrintedJob, PrintedStep, ended};
use crate::error::Error;
use crate::version::Version;

/// Reserved TRES are in MiB, those used in bytes.
const MIB: u64 = 1 << 20;

/// What is read while the text goes by: it may end early.
#[derive(Default)]
struct Read {
    printed: Printed,
    /// Objects of `jobs` so far.
    jobs: u64,
    has_jobs: bool,
    meta: Value,
    errors: Value,
}

/// The whole, or a list of jobs alone, as `jq .jobs` writes it.
struct Whole<'a> {
    read: &'a mut Read,
    by: Option<&'a str>,
}

/// The value of `jobs`.
struct Jobs<'a> {
    read: &'a mut Read,
    by: Option<&'a str>,
}

/// The jobs of the text. `by` is the column that jobs are grouped by.
///
/// # Errors
/// If it is no JSON, or sacct says in it that it failed.
pub fn parse(text: &str, by: Option<&str>) -> Result<Printed, Error> {
    let mut read = Read::default();
    let mut text_reader = serde_json::Deserializer::from_str(text);
    let result = Whole { read: &mut read, by }.deserialize(&mut text_reader);
    if let Err(error) = result {
        if read.printed.jobs.is_empty() {
            return Err(Error::Json(error));
        }
        read.printed.left_out.add("what follows the place where the JSON is broken or ends", error.to_string());
    } else if !read.has_jobs {
        return Err(Error::NoList);
    }
    if read.jobs == 0 {
        // That nothing was found is an error to some versions.
        let complaints = read.errors.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_real = |complaint: &&Value| !words(&complaint["description"]).contains("Nothing found");
        if let Some(complaint) = complaints.iter().find(is_real) {
            let [error, description] = ["error", "description"].map(|key| words(&complaint[key]));
            return Err(Error::Sacct { error, description });
        }
    }
    read.printed.version = version(&read.meta);
    Ok(read.printed)
}

impl Read {
    fn add(&mut self, job: &Value, by: Option<&str>) {
        self.jobs += 1;
        match printed_job(job, by) {
            Ok(job) => self.printed.jobs.push(job),
            Err(reason) => {
                let place = number(&job["job_id"]).map_or(format!("number {}", self.jobs), |id| id.to_string());
                self.printed.left_out.add(reason, format!("job {place}"));
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what sacct --json prints")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "jobs" => map.next_value_seed(Jobs { read: &mut *self.read, by: self.by })?,
                "meta" => self.read.meta = map.next_value()?,
                "errors" => self.read.errors = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        Jobs { read: self.read, by: self.by }.visit_seq(list)
    }
}

impl<'de> DeserializeSeed<'de> for Jobs<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Jobs<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.read.has_jobs = true;
        while let Some(job) = list.next_element::<Value>()? {
            self.read.add(&job, self.by);
        }
        Ok(())
    }
}

/// `meta.slurm.release`, in each spelling; else what the form of the data says.
fn version(meta: &Value) -> Option<Version> {
    let slurm = [&meta["slurm"], &meta["Slurm"]].into_iter().find(|slurm| slurm.is_object())?;
    if let Ok(version) = words(&slurm["release"]).parse() {
        return Some(version);
    }
    let part = |name: &str| u32::try_from(number(&slurm["version"][name])?).ok();
    Some(Version(part("major")?, part("minor")?, part("micro").unwrap_or(0)))
}

fn printed_job(job: &Value, by: Option<&str>) -> Result<PrintedJob, String> {
    let state = match &job["state"] {
        Value::Object(state) => words(state.get("current").unwrap_or(&Value::Null)),
        state => words(state),
    };
    if ended(&state).is_none() {
        return Err(if state.is_empty() { "without a state".into() } else { "whose state is none of Slurm's".into() });
    }
    let allocated = &job["tres"]["allocated"];
    let reserved = tres(allocated, "mem").filter(|mib| *mib > 0);
    let nodes = number(&job["allocation_nodes"]).or(tres(allocated, "node")).unwrap_or(1).max(1);
    let required = &job["required"];
    let cpus = tres(allocated, "cpu").or(number(&required["CPUs"])).unwrap_or(1).max(1);
    let steps = job["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let time = &job["time"];
    let start = moment(&time["start"]);
    let elapsed =
        number(&time["elapsed"]).or(moment(&time["end"]).zip(start).map(|(end, start)| end.saturating_sub(start)));
    let id = number(&job["job_id"]).map_or(String::new(), |id| id.to_string());
    Ok(PrintedJob {
        id: format!("{}/{id}", words(&job["cluster"])),
        name: words(&job["name"]),
        comment: comment(job),
        user: words(&job["user"]),
        by: by.map(|by| column(job, by)),
        component: number(&job["het"]["job_offset"]).unwrap_or(0),
        elapsed_seconds: elapsed.map(|seconds| seconds as f64),
        start_seconds: start,
        nodes,
        cpus,
        per: if is_per_cpu(required, cpus, nodes, reserved) { MemoryPer::Cpu } else { MemoryPer::Node },
        reserved_bytes: reserved.map(|mib| mib.saturating_mul(MIB)),
        steps: steps.iter().filter_map(printed_step).collect(),
        state,
    })
}

/// Up to 22.05 there is one number for both, and only its highest bit, or the sum that was reserved, tells which it is.
fn is_per_cpu(required: &Value, cpus: u64, nodes: u64, reserved: Option<u64>) -> bool {
    const IS_PER_CPU: u64 = 1 << 63;
    match number(&required["memory"]) {
        Some(memory) => memory >= IS_PER_CPU || cpus > nodes && memory.checked_mul(cpus) == reserved,
        None => number(&required["memory_per_cpu"]).is_some_and(|mib| mib > 0),
    }
}

/// The job's comment; where the site does not keep it, the one of the command line.
fn comment(job: &Value) -> String {
    let kept = match &job["comment"] {
        Value::Object(comment) => words(comment.get("job").unwrap_or(&Value::Null)),
        comment => words(comment),
    };
    if !kept.is_empty() {
        return kept;
    }
    let line = words(&job["submit_line"]);
    let given = line.split_once("--comment").map(|(_, rest)| rest.trim_start_matches(['=', ' ', '"', '\'']));
    let given = given.and_then(|rest| rest.split(['"', '\'', ' ']).next());
    given.unwrap_or_default().to_string()
}

fn column(job: &Value, by: &str) -> String {
    match by {
        "jobname" => words(&job["name"]),
        "comment" => comment(job),
        "submitline" => words(&job["submit_line"]),
        "workdir" => words(&job["working_directory"]),
        "wckey" => words(if job["wckey"].is_object() { &job["wckey"]["wckey"] } else { &job["wckey"] }),
        "reservation" => words(&job["reservation"]["name"]),
        other => words(&job[other]),
    }
}

/// `None`: it never ran, or it is the empty step in which Slurm puts what others bring into a job.
fn printed_step(step: &Value) -> Option<PrintedStep> {
    let used = &step["tres"]["requested"];
    let total = tres(&used["total"], "mem").filter(|bytes| *bytes > 0);
    let largest = tres(&used["max"], "mem").or(total).filter(|bytes| *bytes > 0);
    let id = match &step["step"]["id"] {
        Value::String(id) => id.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let is_extern = id.ends_with("extern") || words(&step["step"]["name"]) == "extern";
    let time = &step["time"];
    let state = words(&step["state"]);
    let start = moment(&time["start"]);
    if largest.is_none() && (is_extern || start.is_none() || state.starts_with("PENDING")) {
        return None;
    }
    Some(PrintedStep {
        id,
        state,
        start_seconds: start,
        end_seconds: moment(&time["end"]),
        nodes: number(&step["nodes"]["count"]).unwrap_or(1).max(1),
        tasks: number(&step["tasks"]["count"]).unwrap_or(1).max(1),
        largest_task_bytes: largest,
        tasks_bytes: total,
        virtual_bytes: tres(&used["total"], "vmem"),
        is_exact: true,
        allowed_bytes: tres(&step["tres"]["allocated"], "mem")
            .filter(|mib| *mib > 0)
            .map(|mib| mib.saturating_mul(MIB)),
    })
}

fn tres(list: &Value, kind: &str) -> Option<u64> {
    number(&list.as_array()?.iter().find(|tres| tres["type"] == kind)?["count"])
}

/// Seconds since 1970; `None`: not yet.
fn moment(value: &Value) -> Option<u64> {
    number(value).filter(|seconds| *seconds > 0)
}

/// A number in any of its forms; `None`: not set, without a limit, or none that a figure can be.
fn number(value: &Value) -> Option<u64> {
    // The highest values stand for "not set" and "no limit" in Slurm.
    let plain = |number: u64| (number < u64::MAX - 2 && number != NO_VALUE && number != INFINITE).then_some(number);
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(number), _) => plain(number),
            (None, Some(number)) if number >= 0.0 && number < u64::MAX as f64 => Some(number as u64),
            _ => None,
        },
        Value::String(text) => text.trim().parse().ok().and_then(plain),
        Value::Object(parts) => {
            let is = |name: &str| parts.get(name).and_then(Value::as_bool);
            let is_set = is("set").unwrap_or(true) && !is("infinite").unwrap_or(false);
            parts.get("number").filter(|value| is_set && !value.is_object()).and_then(number)
        }
        _ => None,
    }
}

/// 32 bits of "not set" and of "no limit".
const NO_VALUE: u64 = 0xffff_fffe;
const INFINITE: u64 = 0xffff_ffff;

/// Text in any of its forms, joined.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use model::{JobEnd, PastJob};

    use super::*;
    use crate::Gatherer;
    use crate::accounting::Wanted;
    use crate::kind::By;
    use crate::meaning::Gathering;

    /// One job of two nodes, in the form of a version: its numbers as `number` writes them, its words as `word` does.
    fn job(required: &str, number: fn(u64) -> String, word: fn(&str) -> String) -> String {
        let used = |count: u64| {
            format!(
                r#"[{{"type": "mem", "name": "", "id": 2, "count": {count}, "task": 0, "node": "n1"}}, {{"type": "vmem", "name": "", "id": 7, "count": {}}}]"#,
                count + (7 << 20)
            )
        };
        format!(
            r#"{{"meta": {{}}, "errors": [], "warnings": [], "jobs": [{{"name": "solver", "job_id": 7, "user": "ada", "allocation_nodes": 2,
            "state": {{"current": {}, "reason": "None"}}, "time": {{"elapsed": 3600, "start": 100, "end": 3700}}, "required": {required},
            "tres": {{"allocated": [{{"type": "cpu", "count": 8}}, {{"type": "mem", "count": 8192}}, {{"type": "energy", "count": -2}}], "requested": []}},
            "steps": [{{"step": {{"id": "7.0", "name": "a"}}, "state": {}, "nodes": {{"count": 2}}, "tasks": {{"count": 4}},
                "time": {{"elapsed": 3600, "start": {}, "end": {}}},
                "tres": {{"allocated": [{{"type": "mem", "count": 8192}}], "requested": {{"max": {}, "min": [], "average": [], "total": {}}}}}}}]}}]}}"#,
            word("COMPLETED"),
            word("COMPLETED"),
            number(100),
            number(3700),
            used(100 << 20),
            used(360 << 20),
        )
    }

    fn jobs(text: &str, gatherer: Gatherer) -> Vec<PastJob> {
        let printed = parse(text, None).unwrap();
        let version = printed.version.or(Some(Version(22, 5, 8)));
        let gathering = Gathering { gatherer: Some(gatherer), version, ..Gathering::default() };
        let meaning = gathering.meaning(printed.evidence());
        printed.past_jobs(&meaning, &By::Kind).jobs
    }

    fn plain(value: u64) -> String {
        value.to_string()
    }

    fn set(value: u64) -> String {
        format!(r#"{{"set": true, "infinite": false, "number": {value}}}"#)
    }

    fn word(text: &str) -> String {
        format!("\"{text}\"")
    }

    fn list(text: &str) -> String {
        format!("[\"{text}\"]")
    }

    #[test]
    fn every_version_tells_the_same_in_its_own_form() {
        let unset = r#"{"set": false, "infinite": false, "number": 0}"#;
        let forms = [
            // 21.08 and 22.05: openapi/dbv0.0.37, v0.0.38.
            job(r#"{"CPUs": 8, "memory": 4096}"#, plain, word),
            // 23.02: data_parser/v0.0.39.
            job(&format!(r#"{{"CPUs": 8, "memory_per_cpu": {unset}, "memory_per_node": {}}}"#, set(4096)), plain, word),
            // 23.11, 24.05 and later: v0.0.40 to v0.0.43.
            job(&format!(r#"{{"CPUs": 8, "memory_per_cpu": {unset}, "memory_per_node": {}}}"#, set(4096)), set, list),
        ];
        let first = jobs(&forms[0], Gatherer::CgroupV1);
        assert_eq!(first.len(), 1);
        let read = &first[0];
        assert_eq!(
            (read.name.as_str(), read.end, read.nodes, read.cpus, read.per),
            ("solver", JobEnd::Completed, 2, 8, MemoryPer::Node)
        );
        assert_eq!((read.reserved_bytes, read.elapsed_seconds), (Some(8192 << 20), Some(3600.0)));
        let step = &read.steps[0];
        assert_eq!((step.tasks, step.largest_task_bytes, step.tasks_bytes), (4, Some(100 << 20), Some(360 << 20)));
        assert_eq!((step.cache_bytes, step.start_seconds, step.end_seconds), (Some(7 << 20), 100, 3700));
        for form in &forms[1..] {
            assert_eq!(jobs(form, Gatherer::CgroupV1), first);
        }
        assert_eq!(jobs(&forms[0], Gatherer::Linux)[0].steps[0].cache_bytes, None, "address space is no cache");
    }

    #[test]
    fn memory_per_cpu_is_told_by_its_name_or_by_the_sum() {
        let by_sum = job(r#"{"CPUs": 8, "memory": 1024}"#, plain, word);
        let by_name =
            job(&format!(r#"{{"CPUs": 8, "memory_per_cpu": {}, "memory_per_node": null}}"#, set(1024)), set, list);
        let by_bit = job(r#"{"CPUs": 8, "memory": 9223372036854776832}"#, plain, word);
        for form in [by_sum, by_name, by_bit] {
            assert_eq!(parse(&form, None).unwrap().jobs[0].per, MemoryPer::Cpu);
        }
    }

    #[test]
    fn jobs_of_others_and_older_ones_are_left_out() {
        let text = job("{}", plain, word);
        let jobs = |user: &str, since_seconds| {
            let mut printed = parse(&text, None).unwrap();
            printed.select(&Wanted { user: Some(user.into()), since_seconds });
            printed.jobs.len()
        };
        assert_eq!((jobs("ada", 100), jobs("bob", 100), jobs("ada", 101)), (1, 0, 0));
    }

    #[test]
    fn a_job_that_cannot_be_read_is_left_out_alone() {
        let good = job("{}", plain, word);
        let bad = good.replace(
            "\"jobs\": [",
            "\"jobs\": [{\"job_id\": 9, \"name\": 7}, {\"state\": {\"current\": [\"DONE\"]}}, null, ",
        );
        let printed = parse(&bad, None).unwrap();
        let notes: Vec<String> = printed.left_out.notes().collect();
        assert_eq!((printed.jobs.len(), printed.left_out.len()), (1, 3));
        assert!(notes.contains(&"left out, without a state: job 9, job number 3".to_string()), "{notes:?}");
        // What was read before the text ends is kept.
        let cut = good.replace("]}]}", "]}, {\"name\": \"b\"");
        let printed = parse(&cut, None).unwrap();
        assert!(printed.jobs.len() == 1 && printed.left_out.notes().any(|note| note.contains("ends")), "{printed:?}");
    }

    #[test]
    fn what_is_no_json_of_jobs_is_an_error() {
        let error = |text: &str| parse(text, None).unwrap_err().to_string();
        assert!(error("{\"jobs\": [").contains("EOF"));
        assert!(error("{}").contains("no list \"jobs\""));
        assert!(error("{\"jobs\": 7}").contains("a list of jobs"));
    }

    #[test]
    fn keys_that_stand_twice_and_lists_of_jobs_alone_are_read() {
        let once = job("{}", set, list);
        let twice = once.replacen("\"user\": \"ada\"", "\"user\": \"ada\", \"user\": \"ada\"", 1);
        assert_eq!(parse(&twice, None).unwrap(), parse(&once, None).unwrap());
        let alone: Value = serde_json::from_str(&once).unwrap();
        assert_eq!(parse(&alone["jobs"].to_string(), None).unwrap().jobs, parse(&once, None).unwrap().jobs);
    }

    #[test]
    fn numbers_that_are_not_set_are_not_known() {
        for (text, wanted) in [
            ("5", Some(5)),
            ("\"5\"", Some(5)),
            ("5.0", Some(5)),
            (r#"{"set": true, "infinite": false, "number": 5}"#, Some(5)),
            (r#"{"number": 5}"#, Some(5)),
            (r#"{"set": false, "infinite": true}"#, None),
            (r#"{"set": true, "infinite": true, "number": 0}"#, None),
            (r#"{"set": false, "infinite": false, "number": 5}"#, None),
            ("-2", None),
            ("null", None),
            ("4294967294", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(number(&serde_json::from_str(text).unwrap()), wanted, "{text}");
        }
    }

    #[test]
    fn the_version_is_read_from_each_form_of_meta() {
        for (text, wanted) in [
            (
                r#"{"Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"}}"#,
                Some(Version(22, 5, 8)),
            ),
            (
                r#"{"slurm": {"version": {"major": "24", "micro": "5", "minor": "11"}, "release": "24.11.5"}}"#,
                Some(Version(24, 11, 5)),
            ),
            (r#"{"slurm": {"version": {"major": "25", "micro": "0", "minor": "05"}}}"#, Some(Version(25, 5, 0))),
            ("{}", None),
            ("null", None),
        ] {
            assert_eq!(version(&serde_json::from_str(text).unwrap()), wanted, "{text}");
        }
    }

    #[test]
    fn a_comment_that_the_site_does_not_keep_is_in_the_command_line() {
        let of = |text: &str| comment(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"comment": {"job": "rule_a"}, "submit_line": "sbatch --comment rule_b"}"#), "rule_a");
        assert_eq!(
            of(r#"{"comment": {"job": ""}, "submit_line": "sbatch --comment 'rule_b_wildcards_x' -c 1"}"#),
            "rule_b_wildcards_x"
        );
        assert_eq!(of(r#"{"submit_line": "sbatch --comment=rule_b --mem 4"}"#), "rule_b");
        assert_eq!(of(r#"{"comment": null, "submit_line": "sbatch x"}"#), "");
    }

    #[test]
    fn a_step_without_a_figure_stays_and_one_that_never_ran_does_not() {
        let step = |text: &str| printed_step(&serde_json::from_str(text).unwrap());
        let unmeasured = step(
            r#"{"step": {"id": "7.0"}, "state": ["COMPLETED"], "time": {"start": 5, "end": 6}, "tres": {"requested": {"max": []}}}"#,
        );
        assert_eq!(unmeasured.unwrap().largest_task_bytes, None);
        assert_eq!(
            step(r#"{"step": {"id": "7.0"}, "state": ["CANCELLED"], "time": {"start": 0, "end": 0}, "tres": {}}"#),
            None
        );
        assert_eq!(
            step(r#"{"step": {"id": "7.extern"}, "state": ["COMPLETED"], "time": {"start": 5}, "tres": {}}"#),
            None
        );
    }

    #[test]
    fn that_nothing_was_found_is_no_error_and_that_it_could_not_be_asked_is() {
        let errors =
            |text: &str| format!(r#"{{"errors": [{{"description": "{text}", "error": "code"}}], "jobs": []}}"#);
        assert_eq!(parse(&errors("Nothing found"), None).unwrap(), Printed::default());
        assert!(parse(&errors("no database"), None).unwrap_err().to_string().contains("no database"));
    }
}
