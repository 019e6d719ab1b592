//! What `sacct --json` prints, of Slurm 21.08 and later.
//!
//! Its form follows the site's data_parser. The same figure is a number in one version and `{"set": …, "infinite": …, "number": …}` in the next,
//! a state a word or a list of words, and what the job asked for `memory` or `memory_per_cpu` and `memory_per_node`.

use std::fmt;

use anyhow::{Context, bail};
use model::{MemoryPer, PastJob, PastStep};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::accounting::{Accounting, Wanted, cache_bytes, unknown};
use crate::cli::slurm::Gatherer;

/// TRES that are reserved are told in MiB, those used in bytes.
const MIB: u64 = 1 << 20;

#[derive(Deserialize)]
struct Printed {
    jobs: Vec<Job>,
    #[serde(default)]
    errors: Vec<Complaint>,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    description: Words,
    #[serde(default)]
    error: Words,
}

#[derive(Deserialize)]
struct Job {
    name: Words,
    #[serde(default)]
    user: Words,
    state: State,
    time: Time,
    #[serde(default)]
    allocation_nodes: Number,
    #[serde(default)]
    required: Required,
    tres: JobTres,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct State {
    current: Words,
}

#[derive(Deserialize)]
struct Time {
    elapsed: Number,
    #[serde(default)]
    start: Number,
    #[serde(default)]
    end: Number,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Required {
    #[serde(rename = "CPUs")]
    cpus: Number,
    memory: Number,
    memory_per_cpu: Number,
}

#[derive(Deserialize)]
struct JobTres {
    allocated: Vec<Tres>,
}

#[derive(Deserialize)]
struct Step {
    time: Time,
    state: Words,
    #[serde(default)]
    nodes: Count,
    #[serde(default)]
    tasks: Count,
    tres: StepTres,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Count {
    count: Number,
}

#[derive(Deserialize)]
struct StepTres {
    #[serde(default)]
    allocated: Vec<Tres>,
    /// What it used; the name is Slurm's.
    requested: Used,
}

#[derive(Deserialize)]
struct Used {
    max: Vec<Tres>,
    #[serde(default)]
    total: Vec<Tres>,
}

#[derive(Deserialize)]
struct Tres {
    #[serde(rename = "type")]
    kind: Words,
    count: Number,
}

/// A number in any of its forms; `None`: not set, or none that a figure can be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Number(Option<u64>);

/// Text in any of its forms, joined.
#[derive(Clone, Debug, Default, PartialEq)]
struct Words(String);

/// The jobs that it tells of.
pub fn parse(told: &str, wanted: &Wanted) -> anyhow::Result<Accounting> {
    let printed: Printed = serde_json::from_str(told).context("as JSON")?;
    if printed.jobs.is_empty() {
        // That nothing was found is an error to some versions.
        if let Some(complaint) =
            printed.errors.iter().find(|complaint| !complaint.description.0.contains("Nothing found"))
        {
            bail!("sacct says: {} {}", complaint.error.0, complaint.description.0);
        }
    }
    let mut accounting = Accounting::default();
    for job in printed.jobs.into_iter().filter(|job| wanted.has(&job.user.0, job.time.start.0)) {
        let state = job.state.current.0.clone();
        accounting.add(&state, past_job(job, wanted.gatherer));
    }
    Ok(accounting)
}

fn past_job(job: Job, gatherer: Option<Gatherer>) -> PastJob {
    let reserved = of(&job.tres.allocated, "mem").filter(|mib| *mib > 0);
    let nodes = job.allocation_nodes.0.unwrap_or(1).max(1);
    let cpus = of(&job.tres.allocated, "cpu").or(job.required.cpus.0).unwrap_or(1).max(1);
    // Up to 22.05 there is one number for both, and only the sum that was reserved tells which it is.
    let per_cpu = match job.required.memory.0 {
        Some(memory) => cpus > nodes && memory.checked_mul(cpus) == reserved,
        None => job.required.memory_per_cpu.0.is_some_and(|mib| mib > 0),
    };
    PastJob {
        elapsed_seconds: job.time.elapsed.0.unwrap_or(0) as f64,
        nodes,
        cpus,
        per: if per_cpu { MemoryPer::Cpu } else { MemoryPer::Node },
        reserved_bytes: reserved.map(|mib| mib.saturating_mul(MIB)),
        steps: job.steps.into_iter().map(|step| past_step(step, gatherer)).collect(),
        ..unknown(job.name.0)
    }
}

fn past_step(step: Step, gatherer: Option<Gatherer>) -> PastStep {
    let used = &step.tres.requested;
    PastStep {
        start_seconds: step.time.start.0.unwrap_or(0),
        end_seconds: step.time.end.0.unwrap_or(0),
        nodes: step.nodes.count.0.unwrap_or(1),
        tasks: step.tasks.count.0.unwrap_or(1),
        largest_task_bytes: of(&used.max, "mem").filter(|bytes| *bytes > 0),
        tasks_bytes: of(&used.total, "mem").filter(|bytes| *bytes > 0),
        cache_bytes: cache_bytes(gatherer, of(&used.total, "mem"), of(&used.total, "vmem")),
        allowed_bytes: of(&step.tres.allocated, "mem").map(|mib| mib.saturating_mul(MIB)),
        out_of_memory: step.state.0 == "OUT_OF_MEMORY",
    }
}

fn of(list: &[Tres], kind: &str) -> Option<u64> {
    list.iter().find(|tres| tres.kind.0 == kind)?.count.0
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Number, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or an object with set and number")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
                // The highest values stand for "not set" and "no limit" in Slurm.
                Ok(Number((value < u64::MAX - 2).then_some(value)))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number(value.try_into().ok()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
                Ok(Number((value >= 0.0 && value < u64::MAX as f64).then_some(value as u64)))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Number, E> {
                Ok(Number(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
                let (mut set, mut number) = (true, Number(None));
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "set" => set = map.next_value()?,
                        "number" => number = map.next_value()?,
                        _ => drop(map.next_value::<de::IgnoredAny>()?),
                    }
                }
                Ok(Number(number.0.filter(|_| set)))
            }
        }

        from.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Words, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Words, E> {
                Ok(Words(value.to_string()))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Words, E> {
                Ok(Words::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words: Vec<String> = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(Words(words.join(" ")))
            }
        }

        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use model::JobEnd;

    use super::*;

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

    fn by(gatherer: Gatherer) -> Wanted {
        Wanted { gatherer: Some(gatherer), ..Wanted::default() }
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
        let first = parse(&forms[0], &by(Gatherer::Cgroup)).unwrap();
        assert_eq!(first.jobs.len(), 1);
        let told = &first.jobs[0];
        assert_eq!(
            (told.name.as_str(), told.end, told.nodes, told.cpus, told.per),
            ("solver", JobEnd::Completed, 2, 8, MemoryPer::Node)
        );
        assert_eq!((told.reserved_bytes, told.elapsed_seconds), (Some(8192 << 20), 3600.0));
        let step = &told.steps[0];
        assert_eq!((step.tasks, step.largest_task_bytes, step.tasks_bytes), (4, Some(100 << 20), Some(360 << 20)));
        assert_eq!((step.cache_bytes, step.start_seconds, step.end_seconds), (Some(7 << 20), 100, 3700));
        for form in &forms[1..] {
            assert_eq!(parse(form, &by(Gatherer::Cgroup)).unwrap(), first);
        }
        assert_eq!(
            parse(&forms[0], &by(Gatherer::Linux)).unwrap().jobs[0].steps[0].cache_bytes,
            None,
            "address space is no cache"
        );
    }

    #[test]
    fn memory_per_cpu_is_told_by_its_name_or_by_the_sum() {
        let by_sum = job(r#"{"CPUs": 8, "memory": 1024}"#, plain, word);
        let by_name =
            job(&format!(r#"{{"CPUs": 8, "memory_per_cpu": {}, "memory_per_node": null}}"#, set(1024)), set, list);
        for form in [by_sum, by_name] {
            assert_eq!(parse(&form, &Wanted::default()).unwrap().jobs[0].per, MemoryPer::Cpu);
        }
    }

    #[test]
    fn jobs_of_others_and_older_ones_are_left_out() {
        let told = job("{}", plain, word);
        let jobs = |user: &str, since_seconds| {
            let wanted = Wanted { user: Some(user.into()), since_seconds, gatherer: None };
            parse(&told, &wanted).unwrap().jobs.len()
        };
        assert_eq!((jobs("ada", 100), jobs("bob", 100), jobs("ada", 101)), (1, 0, 0));
    }

    #[test]
    fn what_is_malformed_is_told_by_its_line() {
        let wrong = job(r#"{"CPUs": 8, "memory": 4096}"#, |_| "\"soon\"".into(), word);
        let error = format!("{:#}", parse(&wrong, &Wanted::default()).unwrap_err());
        assert!(error.contains("expected a number") && error.contains("line 5"), "{error}");
        let error = format!("{:#}", parse("{\n \"jobs\": [{\"name\": \"a\"}]}", &Wanted::default()).unwrap_err());
        assert!(error.contains("missing field `state`") && error.contains("line 2"), "{error}");
        let error = format!("{:#}", parse("{\"jobs\": [", &Wanted::default()).unwrap_err());
        assert!(error.contains("EOF"), "{error}");
    }

    #[test]
    fn that_nothing_was_found_is_no_error_and_that_it_could_not_be_asked_is() {
        let errors =
            |text: &str| format!(r#"{{"errors": [{{"description": "{text}", "error": "code"}}], "jobs": []}}"#);
        assert_eq!(parse(&errors("Nothing found"), &Wanted::default()).unwrap(), Accounting::default());
        assert!(parse(&errors("no database"), &Wanted::default()).unwrap_err().to_string().contains("no database"));
    }
}
