use model::Figures;
use proptest::prelude::*;

use super::*;
use crate::Gatherer;
use crate::accounting::{Accounting, Wanted};
use crate::kind::By;
use crate::meaning::Gathering;

/// A job with one step, as others vary it.
pub fn job() -> PrintedJob {
    PrintedJob {
        id: "7".into(),
        name: "solver".into(),
        comment: String::new(),
        user: String::new(),
        state: "COMPLETED".into(),
        by: None,
        component: 0,
        elapsed_seconds: Some(60.0),
        start_seconds: None,
        nodes: 1,
        cpus: 1,
        per: MemoryPer::Node,
        reserved_bytes: None,
        steps: Vec::new(),
    }
}

fn read(text: &str) -> (Printed, Accounting) {
    let mut printed = parse(text, None).unwrap();
    printed.select(&Wanted::default());
    let gathering =
        Gathering { gatherer: Some(Gatherer::CgroupV1), version: "22.05.8".parse().ok(), ..Gathering::default() };
    let meaning = gathering.meaning(printed.evidence());
    assert_eq!(meaning.figures, Figures::Needed);
    let accounting = printed.clone().past_jobs(&meaning, &By::Kind);
    (printed, accounting)
}

fn notes(printed: &Printed) -> String {
    printed.left_out.notes().collect::<Vec<_>>().join("\n")
}

#[test]
fn jobs_and_their_steps_are_read_line_by_line() {
    let text = "JobID|JobName|State|ElapsedRaw|MaxRSS|ReqMem|AllocTRES|NNodes|AllocCPUS|NTasks|TRESUsageInTot|Start|End\n\
        12_3|a|CANCELLED by 1000|60||400M|billing=1,cpu=2,mem=400M,node=1|1|2|||2026-01-01T00:00:00|2026-01-01T00:01:00\n\
        12_3.batch|batch|CANCELLED|60|10.50M||cpu=2,mem=400M,node=1|1|2|1|cpu=00:00:01,mem=10.50M,vmem=20M|2026-01-01T00:00:00|2026-01-01T00:01:00\n\
        12_3.0|x|COMPLETED|50|2048K||cpu=2,mem=400M|1|2|2|mem=3M,vmem=9M|2026-01-01T00:00:05|2026-01-01T00:00:55\n\
        13|b|RUNNING|5|||||||||\n";
    let (printed, found) = read(text);
    assert_eq!((found.jobs.len(), found.unfinished, printed.left_out.len()), (1, 1, 0));
    let job = &found.jobs[0];
    assert_eq!((job.name.as_str(), job.cpus, job.reserved_bytes), ("a", 2, Some(400 << 20)));
    assert_eq!(job.steps[0].largest_task_bytes, Some(21 << 19));
    assert_eq!(
        (job.steps[1].tasks, job.steps[1].tasks_bytes, job.steps[1].cache_bytes),
        (2, Some(3 << 20), Some(6 << 20))
    );
    assert_eq!(job.steps[1].end_seconds - job.steps[1].start_seconds, 50);
}

const HEADER: &str = "JobID|JobName|State|ElapsedRaw|MaxRSS|ReqMem|NNodes|AllocCPUS\n";

fn reserved(request: &str) -> (MemoryPer, Option<u64>) {
    let job = &read(&format!("{HEADER}7|a|COMPLETED|60||{request}|4|8\n7.0|a|COMPLETED|60|5K||4|8\n")).1.jobs[0];
    (job.per, job.reserved_bytes)
}

#[test]
fn a_request_is_a_total_unless_a_letter_says_of_what() {
    const GIB: u64 = 1 << 30;
    for (request, wanted) in [
        ("64G", (MemoryPer::Node, Some(64 * GIB))),
        ("16Gn", (MemoryPer::Node, Some(64 * GIB))),
        ("8Gc", (MemoryPer::Cpu, Some(64 * GIB))),
        ("65536", (MemoryPer::Node, Some(64 * GIB))),
        ("16?", (MemoryPer::Node, None)),
        ("0", (MemoryPer::Node, None)),
        ("0n", (MemoryPer::Node, None)),
        ("", (MemoryPer::Node, None)),
    ] {
        assert_eq!(reserved(request), wanted, "{request}");
    }
}

#[test]
fn delimiters_orders_and_line_ends_of_sites_are_read() {
    let lines = [
        ["JobID", "JobName", "State", "Elapsed", "MaxRSS", "AllocTRES"],
        ["7", "a", "COMPLETED", "00:01:00", "", "cpu=2,mem=400M"],
        ["7.0", "x", "COMPLETED", "00:01:00", "5000K", "cpu=2,mem=400M"],
    ];
    let plain = lines.map(|line| line.join("|")).join("\n");
    let wanted = read(&plain).1;
    assert_eq!((wanted.jobs.len(), wanted.jobs[0].steps.len(), wanted.jobs[0].elapsed_seconds), (1, 1, Some(60.0)));
    for delimiter in ["|", "\t", ",", ";", "@@", "^", " | "] {
        let text = lines.map(|line| line.join(delimiter)).join("\n");
        assert_eq!(read(&text).1, wanted, "{delimiter}");
        // --parsable ends each line in one.
        let text = lines.map(|line| line.join(delimiter) + delimiter).join("\n");
        assert_eq!(read(&text).1, wanted, "{delimiter} at the end");
    }
    let turned = lines.map(|line| line.iter().rev().copied().collect::<Vec<_>>().join("|")).join("\n");
    assert_eq!(read(&turned).1, wanted, "columns in another order");
    let quoted = lines.map(|line| line.map(|field| format!("\"{field}\"")).join(",")).join("\n");
    assert_eq!(read(&quoted).1, wanted, "CSV");
    assert_eq!(read(&format!("Loading modules …\n\n{plain}\n\n{plain}\n")).1, wanted, "a banner, and a file twice");
    assert_eq!(read(&plain.replace("JobID", "Job ID").replace("MaxRSS", "max_rss")).1, wanted);
}

#[test]
fn a_bad_line_leaves_out_its_job_alone() {
    let good = "8|ok|COMPLETED|60||1G|1|1\n8.batch|batch|COMPLETED|60|500M||1|1\n";
    for (bad, complaint) in [
        ("7|a|COMPLETED|soon||1G|1|1\n", "for Elapsed is no time: line 2"),
        ("7|a|DONE|60||1G|1|1\n", "for State is no state of Slurm's: line 2"),
        ("7|a|COMPLETED|60||1G|many|1\n", "for NNodes is no number: line 2"),
        ("7|a|COMPLETED\n", "with 3 fields instead of 8: line 2"),
        ("7|a|COMPLETED|60||1G|1|1\n7.0|x|COMPLETED|60|much||1|1\n", "for MaxRSS is no size: line 3"),
        ("7.0|x|COMPLETED|60|5M||1|1\n", "a step without the line of its job: line 2"),
    ] {
        for text in [format!("{HEADER}{bad}{good}"), format!("{HEADER}{good}{bad}")] {
            let (printed, found) = read(&text);
            let (complaint, _) = complaint.split_once(": ").unwrap();
            assert!(notes(&printed).contains(complaint), "{bad}: {}", notes(&printed));
            let known = |job: &&model::PastJob| job.steps.iter().all(|step| step.largest_task_bytes.is_some());
            let names: Vec<&str> = found.jobs.iter().filter(known).map(|job| job.name.as_str()).collect();
            assert_eq!(names, ["ok"], "{bad}");
        }
        let (printed, _) = read(&format!("{HEADER}{bad}{good}"));
        assert!(notes(&printed).contains(complaint), "{bad}: {}", notes(&printed));
    }
}

#[test]
fn a_name_may_hold_delimiters_and_line_ends() {
    for name in [
        "a|b",
        "a||b|",
        "a\nsecond line",
        "a\n\nx|y\nz",
        "|",
        "COMPLETED|60",
        "A\"|\"",
        "\"a|b\"",
        "\"",
        "\"a\"",
        "\"|\"|\"",
        "\"a\nb",
    ] {
        let text = format!("{HEADER}7|{name}|COMPLETED|60||1G|1|1\n7.0|x|COMPLETED|60|5M||1|1\n");
        let (printed, found) = read(&text);
        assert_eq!((found.jobs.len(), printed.left_out.len()), (1, 0), "{name:?} {}", notes(&printed));
        assert_eq!((found.jobs[0].name.as_str(), found.jobs[0].steps.len()), (name, 1));
    }
}

#[test]
fn quotes_are_csvs_only_where_another_tool_wrote_csv() {
    for (text, name) in [
        // sacct quotes nothing.
        ("JobID|JobName|State|MaxRSS\n7|\"a\"|COMPLETED|5M\n", "\"a\""),
        ("JobID|JobName|State|MaxRSS\n\"7\"|\"a|b\"|\"COMPLETED\"|\"5M\"\n", "a|b"),
        ("\"JobID\"|\"JobName\"|\"State\"|\"MaxRSS\"\n7|\"a|\"\"b\"\"\"|COMPLETED|5M\n", "a|\"b\""),
        ("JobID,JobName,State,MaxRSS\n7,\"a,b\",COMPLETED,5M\n", "a,b"),
        ("JobID,JobName,State,MaxRSS\n7,\"a,\nb\",COMPLETED,5M\n", "a,\nb"),
        ("JobID,JobName,State,MaxRSS\n7,a\",\"b,COMPLETED,5M\n", "a\",\"b"),
        ("JobID;JobName;State;MaxRSS\n7;\"a;COMPLETED;5M\n", "\"a"),
    ] {
        let printed = parse(text, None).unwrap();
        assert_eq!(printed.jobs.len(), 1, "{text} {}", notes(&printed));
        assert_eq!(printed.jobs[0].name, name, "{text}");
    }
}

#[test]
fn each_attempt_at_a_requeued_job_is_one_job() {
    let header = "JobID|JobName|State|ElapsedRaw|MaxRSS|Start|End\n";
    let attempt = |state: &str, hour: u64, mem: u64| {
        let times = format!("2026-01-01T0{hour}:00:00|2026-01-01T0{hour}:30:00");
        format!("7|a|{state}|1800||{times}\n7.batch|batch|{state}|1800|{mem}M|{times}\n")
    };
    let twice = format!("{header}{}{}", attempt("NODE_FAIL", 1, 50), attempt("COMPLETED", 3, 90));
    let found = read(&twice).1;
    let of: Vec<_> = found.jobs.iter().map(|job| job.steps[0].largest_task_bytes).collect();
    assert_eq!(of, [Some(50 << 20), Some(90 << 20)]);
    // Jobs before steps.
    let mut lines: Vec<&str> = twice.lines().skip(1).collect();
    lines.sort_by_key(|line| line.contains("batch"));
    assert_eq!(read(&format!("{header}{}\n", lines.join("\n"))).1, found);
    // Two files of which the first is older.
    let running = format!("{header}7|a|RUNNING|5||2026-01-01T03:00:00|Unknown\n{}", attempt("COMPLETED", 3, 90));
    let found = read(&running).1;
    assert_eq!((found.jobs.len(), found.unfinished, found.jobs[0].steps.len()), (1, 0, 1));
}

#[test]
fn a_step_too_short_to_be_sampled_has_no_figure() {
    let text = "JobID|JobName|State|ElapsedRaw|MaxRSS|Start|End\n\
        7|a|COMPLETED|100||2026-01-01T00:00:00|2026-01-01T00:01:40\n\
        7.0|x|COMPLETED|20||2026-01-01T00:00:00|2026-01-01T00:00:20\n\
        8|b|COMPLETED|15||2026-01-01T00:00:00|2026-01-01T00:00:15\n\
        8.0|x|COMPLETED|15|2M|2026-01-01T00:00:00|2026-01-01T00:00:15\n\
        9|c|COMPLETED|100||2026-01-01T00:00:00|2026-01-01T00:01:40\n\
        9.0|x|COMPLETED|100|2M|2026-01-01T00:00:00|2026-01-01T00:01:40\n";
    let found = read(text).1;
    let measured: Vec<bool> = found.jobs.iter().map(|job| job.steps[0].largest_task_bytes.is_some()).collect();
    assert_eq!((measured, found.too_short), (vec![false, false, true], 1));
}

#[test]
fn what_is_missing_is_said_by_its_name() {
    let error = |text: &str| parse(text, None).unwrap_err().to_string();
    assert!(error("").contains("it is empty") && error("\n \n").contains("it is empty"));
    assert!(error("JobID|JobName\n").contains("no column State; write sacct -P -o JobID,"));
    assert!(error("JobID|State\n").contains("no column MaxRSS"));
    assert!(error("JobID|State|MaxRSS\n").contains("no column JobName"));
    assert!(error("7|a|COMPLETED|60|\n").contains("no column JobID"));
    assert!(error("JobID   JobName   State\n------- --------- -----\n").contains("aligned by blanks"));
    assert!(parse("JobID|State|MaxRSS\n", Some("account")).unwrap_err().to_string().contains("no column account"));
}

fn states() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED by 1000", "NODE_FAIL"])
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(512), ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), has_header in any::<bool>()) {
        let mut text = if has_header { HEADER.to_string() } else { String::new() };
        text += &super::super::decode::decode(&bytes).unwrap_or_default();
        let _ = parse(&text, None);
        let _ = super::super::json::parse(&text, None);
    }

    #[test]
    fn no_pieces_of_lines_make_it_panic(pieces in prop::collection::vec(
        prop::sample::select(vec!["7", "7.0", "7.batch", "|", "|", "|", "\n", "COMPLETED", "1G", "16?", "60", "1-", ":", "a", "é", "\"", "mem=", ",", "0.00T", "9999999999999999999E"]),
        0..60,
    )) {
        let text = format!("{HEADER}{}", pieces.concat());
        if let Ok(mut printed) = parse(&text, None) {
            printed.select(&Wanted::default());
            let meaning = Gathering::default().meaning(printed.evidence());
            let jobs = printed.past_jobs(&meaning, &By::Kind).jobs;
            budget::jobs::recommend(&jobs, 0.95);
        }
    }

    #[test]
    fn a_well_formed_job_is_read_back(
        id in 1u64..1_000_000, array in prop::option::of(0u64..1000), name in "[^\r\n]{0,20}(\n[^\r\n]{0,9})?", state in states(),
        seconds in 0u64..1_000_000, kib in 1u64..1 << 40, asked_mib in 1u64..1 << 30, nodes in 1u64..5000, cpus in 1u64..100_000,
    ) {
        let id = array.map_or(id.to_string(), |task| format!("{id}_{task}"));
        // A name that ends or begins with blanks is read without them; one that looks like a line of its own cannot be told from one.
        let name = name.trim().to_string();
        let looks_like_a_job = |line: &str| line.split_once('|').is_some_and(|(id, _)| fields::has_form(columns::Form::JobId, id));
        prop_assume!(!name.lines().skip(1).any(looks_like_a_job));
        prop_assume!(!name.contains("COMPLETED") && !name.lines().any(|line| line.trim().is_empty()));
        let text = format!(
            "JobID|JobName|State|ElapsedRaw|MaxRSS|AllocTRES|NNodes|AllocCPUS\n{id}|{name}|{state}|{seconds}||cpu={cpus},mem={asked_mib}M|{nodes}|{cpus}\n\
             {id}.0|x|{state}|{seconds}|{kib}K||{nodes}|{cpus}\n"
        );
        let printed = parse(&text, None).unwrap();
        prop_assert_eq!(printed.jobs.len(), 1, "{:?}", notes(&printed));
        let job = &printed.jobs[0];
        prop_assert_eq!((&job.id, job.name.as_str(), job.state.as_str()), (&id, name.as_str(), state));
        prop_assert_eq!((job.elapsed_seconds, job.nodes, job.cpus), (Some(seconds as f64), nodes, cpus));
        prop_assert_eq!(job.reserved_bytes, Some(asked_mib << 20));
        prop_assert_eq!(job.steps[0].largest_task_bytes, Some(kib << 10));
    }
}
