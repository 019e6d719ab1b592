//! `bursar recommend` on the accounting of a real Slurm, recorded of jobs of known needs (tests/slurm/record).

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::bursar;

const MIB: u64 = 1 << 20;

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slurm/recorded").join(name)
}

fn recommend(arguments: &[&str], from: &Path) -> Output {
    bursar().arg("recommend").args(arguments).arg("--from").arg(from).stdin(Stdio::null()).output().unwrap()
}

fn figures(file: &str, gatherer: &str) -> Value {
    let output = recommend(&["--gatherer", gatherer, "--json", "-"], &recorded(file));
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn job<'a>(figures: &'a Value, name: &str) -> &'a Value {
    let jobs = figures["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["name"] == name).unwrap_or_else(|| panic!("{name}: {figures}"))
}

fn mib(job: &Value, name: &str) -> u64 {
    job[name].as_u64().unwrap_or_else(|| panic!("{name}: {job}")) / MIB
}

#[test]
fn figures_of_both_gatherers_match_known_needs() {
    for (gatherer, rest) in [("linux", 8..14), ("cgroup", 2..5)] {
        let found = figures(&format!("slurm-22.05.8-{gatherer}.json"), gatherer);
        let is_near = |held: u64, figure: u64| {
            assert!(rest.contains(&figure.saturating_sub(held)), "{gatherer}: {held}, {figure}: {found}")
        };
        // 80 to 104 MiB and what an interpreter takes; one failed at 84, one was killed at 60.
        let solver = job(&found, "solver");
        assert_eq!(
            (solver["runs"].as_u64(), solver["cut_short"].as_u64(), solver["out_of_memory"].as_u64()),
            (Some(6), Some(2), Some(1))
        );
        is_near(104, mib(solver, "max_bytes"));
        assert_eq!((mib(solver, "min_bytes"), mib(solver, "asked_bytes")), (60, 400));
        assert_eq!(mib(solver, "mem_bytes"), (solver["max_bytes"].as_u64().unwrap() * 11 / 10).div_ceil(MIB));
        assert_eq!((solver["killed"].as_u64(), solver["maybe_killed"].as_u64()), (Some(0), Some(2)));
        is_near(43, mib(job(&found, "array"), "max_bytes"));
        assert_eq!(job(&found, "array")["runs"], 4);
        // 2 CPUs, each with a task of 50 MiB.
        assert_eq!(job(&found, "per-cpu")["per"], "cpu");
        assert_eq!(mib(job(&found, "per-cpu"), "asked_bytes"), 150);
        // 30 and 40 MiB at the same time, then 50.
        assert!((74..112).contains(&mib(job(&found, "steps"), "max_bytes")), "{found}");
        assert_eq!(job(&found, "too-long")["is_lower_bound"], true, "a time-out is no end");
    }
}

#[test]
fn page_cache_that_may_be_shared_memory_stays_in_the_request() {
    let by_cgroup = figures("slurm-22.05.8-cgroup.json", "cgroup");
    let reader = job(&by_cgroup, "reader");
    assert_eq!(
        (mib(reader, "max_bytes"), mib(reader, "cache_bytes")),
        (28, 64),
        "24 MiB of heap, a file of 64: {reader}"
    );
    assert!((92..=102).contains(&mib(reader, "mem_bytes")) && mib(reader, "mem_without_cache_bytes") < 40, "{reader}");
    assert_eq!((&reader["is_upper_bound"], &reader["mem_with_cache_bytes"]), (&true.into(), &reader["mem_bytes"]));
    let by_linux = figures("slurm-22.05.8-linux.json", "linux");
    assert_eq!(job(&by_linux, "reader")["cache_bytes"], Value::Null);
    let doubts = by_linux["doubts"].as_array().unwrap();
    assert_eq!((&by_linux["slurm_version"], doubts.len()), (&"22.05.8".into(), 1), "{by_linux}");
    assert!(doubts[0].as_str().unwrap().starts_with("lower bound: no run ended well of cancelled, too-long"));
}

#[test]
fn slurm_24_11_reports_heap_shared_memory_and_page_cache() {
    for (gatherer, reader_holds) in [("linux", 24..48), ("cgroup", 88..100)] {
        for end in ["json", "txt"] {
            let path = recorded(&format!("slurm-24.11.5-{gatherer}.{end}"));
            let (found, text) = of(&path, &["--gatherer", gatherer, "--slurm-version", "24.11.5"]);
            let most = |name: &str| mib(job(&found, name), "max_bytes");
            let solver = job(&found, "solver");
            assert!((104..120).contains(&most("solver")) && solver["cut_short"] == 2, "{path:?}: {found}");
            assert!((100..116).contains(&most("shared")) && (43..60).contains(&most("array")), "{path:?}: {found}");
            assert!(reader_holds.contains(&most("reader")), "24 MiB of heap, a file of 64: {path:?}: {found}");
            assert!(
                (44..60).contains(&most("numbered-*")) && job(&found, "numbered-*")["runs"] == 4,
                "{path:?}: {found}"
            );
            let (is_cgroup, says) = (gatherer == "cgroup", text.starts_with("upper bound: MaxRSS holds page cache"));
            assert_eq!((says, &solver["is_upper_bound"]), (is_cgroup, &is_cgroup.into()), "{path:?}: {text}");
            assert!(text.contains("lower bound: no run ended well of cancelled, too-long"), "{path:?}: {text}");
            assert!(text.contains("left out, jobs of which the accounting has no figure: 1"), "{path:?}: {text}");
        }
    }
}

/// The text without line ends.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The JSON and the text that are printed for a file.
fn of(path: &Path, arguments: &[&str]) -> (Value, String) {
    let json = recommend(&[arguments, &["--json", "-"]].concat(), path);
    assert!(json.status.success(), "{json:?}");
    let text = String::from_utf8(recommend(arguments, path).stdout).unwrap();
    (serde_json::from_slice(&json.stdout).unwrap(), text)
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slurm/cases").join(name)
}

/// The error for a file without usable jobs.
fn refusal(path: &Path) -> String {
    let output = recommend(&[], path);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn shared_memory_is_never_taken_for_page_cache() {
    // With 100 MiB of MAP_SHARED, the job was killed at 8M and at 20M.
    let path = recorded("slurm-22.05.8-cgroup-shared-memory.txt");
    for arguments in [&[][..], &["--gatherer", "cgroup"], &["--gatherer", "cgroup-v1", "--slurm-version", "22.05.8"]] {
        let (found, text) = of(&path, arguments);
        assert!((106..=130).contains(&mib(job(&found, "shm"), "mem_bytes")), "{arguments:?} {found}");
        assert!(text.starts_with("upper bound:") && text.contains("shared memory"), "{arguments:?} {text}");
    }
    // Before 22.05.1 vmem is address space, so no figure has shared memory: the answer says so first.
    let (_, text) = of(&path, &["--gatherer", "cgroup", "--slurm-version", "21.08.8"]);
    assert!(text.starts_with("not sure: MaxRSS is heap and leaves out shared memory"), "{text}");
}

#[test]
fn figures_with_page_cache_are_upper_bounds_within_the_request() {
    for name in ["slurm-24.11.5-cgroup-cache-as-heap.json", "slurm-24.11.5-cgroup-cache-as-heap.txt"] {
        let (found, text) = of(&recorded(name), &[]);
        assert!(text.starts_with("upper bound: MaxRSS holds page cache (jobacct_gather/cgroup"), "{name} {text}");
        assert_eq!(found["gatherer"], "jobacct_gather/cgroup");
        for (name, mem) in [("streamer", 200..=200), ("writer", 200..=200), ("shm", 101..=130), ("heap80", 84..=100)] {
            let job = job(&found, name);
            assert!(mem.contains(&mib(job, "mem_bytes")), "{job}");
            assert!(job["mem_bytes"].as_u64() <= job["asked_bytes"].as_u64() && job["is_upper_bound"] == true, "{job}");
        }
    }
    let (found, _) = of(&recorded("slurm-24.11.5-cgroup-cache-as-heap.json"), &[]);
    assert_eq!(found["slurm_version"], "24.11.5");
    // A job of 25.05 that used all of its request.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full");
    let full = "JobID|JobName|State|ElapsedRaw|MaxRSS|AllocTRES|TRESUsageInTot\n7|full|COMPLETED|600||mem=10G|\n\
                7.batch|batch|COMPLETED|600|10466336K||mem=10466336K,vmem=10466400K\n";
    std::fs::write(&path, full).unwrap();
    for arguments in [&[][..], &["--gatherer", "cgroup"], &["--gatherer", "cgroup", "--slurm-version", "25.05.3"]] {
        let (found, text) = of(&path, arguments);
        assert_eq!(mib(job(&found, "full"), "mem_bytes"), 10 << 10, "{arguments:?}");
        assert!(!text.starts_with("1 past job"), "{text}");
    }
}

#[test]
fn a_step_without_figures_makes_its_job_unknown() {
    for name in ["slurm-24.11.5-cgroup-unmeasured-step.json", "slurm-24.11.5-cgroup-unmeasured-step.txt"] {
        let (found, text) = of(&recorded(name), &[]);
        let names: Vec<&str> =
            found["jobs"].as_array().unwrap().iter().filter_map(|job| job["name"].as_str()).collect();
        assert_eq!(names, ["tasks2", "heap80", "reader"], "{text}");
        assert!(text.contains("left out, jobs with a step that the accounting has no figure of"), "{text}");
    }
    let error = refusal(&case("many-short-steps.txt"));
    assert!(error.contains("the memory of none is known") && !error.contains("--mem"), "{error}");
    // Figures in TiB are too coarse for jobs of some MiB.
    let error = refusal(&recorded("slurm-24.11.5-states-units-T.txt"));
    assert!(error.contains("sacct --noconvert"), "{error}");
    let (found, _) = of(&recorded("slurm-24.11.5-states.txt"), &[]);
    assert_eq!((mib(job(&found, "percpu"), "mem_bytes"), &job(&found, "arr")["runs"]), (75, &3.into()), "{found}");
}

#[test]
fn names_of_workflow_managers_define_kinds() {
    let (found, _) = of(&case("snakemake-one-uuid.txt"), &["--gatherer", "cgroup"]);
    let gib = |name| mib(job(&found, name), "mem_bytes") as f64 / 1024.0;
    assert!((65.9..66.1).contains(&gib("rule_assemble")) && (0.4..0.5).contains(&gib("rule_trim")), "{found}");
    assert_eq!((&job(&found, "rule_trim")["runs"], &job(&found, "rule_assemble")["runs"]), (&38.into(), &2.into()));
    let (found, text) = of(&case("snakemake.txt"), &["--gatherer", "linux"]);
    assert_eq!(found["jobs"].as_array().unwrap().len(), 1);
    assert!(text.starts_with("not sure: job names that are UUIDs"), "{text}");
    let (found, _) = of(&case("nextflow.txt"), &["--gatherer", "cgroup"]);
    let align = job(&found, "nf-ALIGN_(*)");
    assert_eq!(
        (found["jobs"].as_array().unwrap().len(), &align["runs"], &align["names"]),
        (1, &200.into(), &200.into())
    );
    assert!((560..590).contains(&mib(align, "percentile_bytes")), "{align}");
}

#[test]
fn the_user_can_define_kinds() {
    let (found, _) = of(&case("snakemake-one-uuid.txt"), &["--gatherer", "cgroup", "--by", "Comment"]);
    assert_eq!(job(&found, "rule_trim")["runs"], 38);
    let (found, _) = of(&case("nextflow.txt"), &["--by", "^nf-([A-Z]+)"]);
    assert_eq!(job(&found, "ALIGN")["runs"], 200);
    let (found, _) = of(&case("nextflow.txt"), &["--by", "JobName"]);
    assert_eq!(found["jobs"].as_array().unwrap().len(), 200);
    let output = recommend(&["--by", "Account"], &case("nextflow.txt"));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no column account"));
    let output = recommend(&["--by", "Coment"], &case("snakemake-one-uuid.txt"));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--by Coment is no column of sacct"));
    let output = recommend(&["--by", "("], &case("nextflow.txt"));
    assert!(String::from_utf8(output.stderr).unwrap().contains("neither a column of sacct nor a regular expression"));
}

/// An accounting of jobs, each with its name, state and MaxRSS in MiB, with a request of 8 GiB.
fn accounting(jobs: &[(String, &str, u64)]) -> tempfile::NamedTempFile {
    let mut text = String::from("JobID|JobName|State|ElapsedRaw|MaxRSS|AllocTRES\n");
    for (at, (name, state, mib)) in jobs.iter().enumerate() {
        let id = at + 1;
        text += &format!("{id}|{name}|{state}|600||cpu=1,mem=8G\n{id}.batch|batch|{state}|600|{mib}M|\n");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn reserved_memory_of_jobs_without_a_duration_is_unknown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "JobID|JobName|State|MaxRSS|ReqMem|NNodes\n1|solver|COMPLETED||8Gn|1\n1.batch|batch|COMPLETED|400M||1\n";
    std::fs::write(file.path(), text).unwrap();
    let (found, text) = of(file.path(), &["--gatherer", "linux"]);
    let solver = job(&found, "solver");
    assert_eq!(mib(solver, "asked_bytes"), 8192, "{found}");
    assert!(solver["reserved_gib_hours"].is_null() && solver["saved_gib_hours"].is_null(), "{found}");
    assert!(text.contains("how long they ran is unknown") && !text.contains("requests are unknown"), "{text}");
    let row = words(text.lines().find(|line| line.starts_with("solver")).unwrap());
    assert!(row.contains(" 8.0G 440M - 0 "), "{row}");
}

#[test]
fn numbered_names_are_one_kind_and_that_is_reported() {
    let linux = ["--gatherer", "linux"];
    let jobs: Vec<_> = (1..=100).map(|at| (format!("align_{at:03}"), "COMPLETED", 400 + at * 37 % 100)).collect();
    let (found, text) = of(accounting(&jobs).path(), &linux);
    let align = job(&found, "align_*");
    assert_eq!((&align["runs"], &align["names"], &align["by_number"]), (&100.into(), &100.into(), &Value::Null));
    assert_eq!(mib(align, "mem_bytes"), 544, "95 of 100 need 494 MiB");
    assert_eq!(align["killed"], 0);
    assert!(
        words(&text)
            .contains("note: job names that differ only in numbers are one kind: align_* (100 names). --by JobName"),
        "{text}"
    );
    let (found, text) = of(accounting(&jobs).path(), &["--gatherer", "linux", "--by", "JobName"]);
    assert!(found["jobs"].as_array().unwrap().len() == 100 && !words(&text).contains("one kind"), "{text}");
    // Many similar numbers must not hide the jobs that were killed.
    let mut jobs: Vec<_> = (1..=200).map(|at| (format!("run{at}"), "COMPLETED", 400)).collect();
    jobs.extend((201..=204).map(|at| (format!("run{at}"), "COMPLETED", 700)));
    let (found, text) = of(accounting(&jobs).path(), &linux);
    assert_eq!((mib(job(&found, "run*"), "mem_bytes"), &job(&found, "run*")["killed"]), (440, &4.into()));
    assert!(words(&text).contains("killed 4 of them"), "{text}");
}

#[test]
fn memory_that_grows_with_the_number_is_reported() {
    let linux = ["--gatherer", "linux"];
    let jobs: Vec<_> = (1..=22).map(|at| (format!("chr{at}"), "COMPLETED", 4400 - 190 * at)).collect();
    let (found, text) = of(accounting(&jobs).path(), &linux);
    assert_eq!((mib(job(&found, "chr*"), "mem_bytes"), &job(&found, "chr*")["by_number"]), (4631, &"falls".into()));
    assert!(
        words(&text).contains("memory falls as the number grows in chr* (220 MiB at chr22, 4.11 GiB at chr1)"),
        "{text}"
    );
    assert!(!text.contains('\u{2264}') && job(&found, "chr*")["is_upper_bound"] == false, "no page cache: {text}");
    let jobs = [3, 10, 30].map(|k| (format!("K={k}_fit"), "COMPLETED", 100 * k));
    let (found, text) = of(accounting(&jobs).path(), &linux);
    assert_eq!(
        (mib(job(&found, "K=*_fit"), "mem_bytes"), &job(&found, "K=*_fit")["by_number"]),
        (3300, &"grows".into())
    );
    assert!(
        text.starts_with(
            "not sure: memory grows with the number in K=*_fit (300 MiB at K=3_fit, 2.93 GiB at K=30_fit)"
        ),
        "{text}"
    );
    let row = text.lines().find(|line| line.starts_with("K=*_fit")).unwrap();
    assert!(row.trim_end().ends_with('-'), "the next number is not one of these: {row}");
}

#[test]
fn the_number_that_memory_grows_with_is_named() {
    let linux = ["--gatherer", "linux"];
    let row = |text: &str, name: &str| text.lines().find(|line| line.starts_with(name)).map(words).unwrap();
    let of_k = [(21, 1000), (33, 3000), (55, 6000)];
    for (samples, ks) in [(3, &of_k[..]), (10, &of_k[..2])] {
        let names = |(k, mib): &(u64, u64)| {
            let (k, mib) = (*k, *mib);
            (1..=samples).map(move |sample| (format!("s{sample}_k{k}"), "COMPLETED", mib))
        };
        let jobs: Vec<_> = ks.iter().flat_map(names).collect();
        let (found, text) = of(accounting(&jobs).path(), &linux);
        assert!(
            words(&text).starts_with("not sure: memory grows with the second number in s*_k* (1000 MiB at s"),
            "{text}"
        );
        let kind = job(&found, "s*_k*");
        assert_eq!((&kind["by_number"], &kind["by_number_positions"]), (&"grows".into(), &serde_json::json!([2])));
        assert!(row(&text, "s*_k*").ends_with(" 0 -"), "the next number is unknown: {text}");
    }
    let jobs: Vec<_> = (1..=22).map(|at| (format!("chr{at}"), "COMPLETED", 4400 - 190 * at)).collect();
    let (_, text) = of(accounting(&jobs).path(), &linux);
    assert!(row(&text, "chr*").ends_with(" 0 -"), "a smaller number may need more: {text}");
}

#[test]
fn two_names_that_differ_in_a_number_are_two_kinds() {
    for (small, large) in [("h264", "h265"), ("v1", "v2"), ("100", "200")] {
        let jobs = [(small.to_string(), "COMPLETED", 200), (large.to_string(), "COMPLETED", 990)];
        let (found, text) = of(accounting(&jobs).path(), &["--gatherer", "linux"]);
        assert_eq!((mib(job(&found, small), "mem_bytes"), mib(job(&found, large), "mem_bytes")), (220, 1089), "{text}");
        assert!(!text.contains("not sure") && !text.contains("one kind"), "{text}");
    }
}

#[test]
fn numeric_names_are_shown_as_numbers() {
    let jobs = [1, 2, 3].map(|at| (format!("{at}"), "COMPLETED", 500));
    let (found, text) = of(accounting(&jobs).path(), &["--gatherer", "linux"]);
    assert_eq!(job(&found, "(numbers)")["names"], 3);
    assert!(words(&text).contains("one kind: (numbers) (3 names)"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with('*')), "{text}");
}

#[test]
fn jobs_that_never_completed_have_a_lower_bound_and_no_mem() {
    for state in ["OUT_OF_MEMORY", "TIMEOUT", "CANCELLED by 1000", "NODE_FAIL", "FAILED"] {
        let cut = ("cut".to_string(), state, 900);
        let (found, text) = of(accounting(std::slice::from_ref(&cut)).path(), &["--gatherer", "linux"]);
        assert_eq!(
            (&job(&found, "cut")["mem_bytes"], &job(&found, "cut")["is_lower_bound"]),
            (&Value::Null, &true.into())
        );
        assert!(words(&text).starts_with("lower bound: no run ended well of cut. These jobs used at least"), "{text}");
        assert!(words(&text).contains("1 past job: none of a kind that ended well, so no --mem is known"), "{text}");
        let row = text.lines().find(|line| line.starts_with("cut")).unwrap();
        let least = if state == "OUT_OF_MEMORY" { "> 8.0G" } else { "> 900M" };
        assert_eq!(row.matches(least).count(), 3, "as need, as most and as --mem: {row}");
        // Beside a kind with a completed run.
        let (found, text) = of(accounting(&[cut, ("whole".into(), "COMPLETED", 500)]).path(), &["--gatherer", "linux"]);
        assert_eq!((&job(&found, "cut")["mem_bytes"], mib(job(&found, "whole"), "mem_bytes")), (&Value::Null, 550));
        assert!(words(&text).contains("killed none of them. 1 more is of a kind that never ended well"), "{text}");
    }
    // The largest runs of a kind were cut short: the needs of the others are no answer either.
    let jobs = [("a".to_string(), "COMPLETED", 500), ("a".to_string(), "TIMEOUT", 900)];
    let (found, text) = of(accounting(&jobs).path(), &["--gatherer", "linux"]);
    assert_eq!((mib(job(&found, "a"), "mem_bytes"), &job(&found, "a")["is_lower_bound"]), (990, &true.into()));
    assert!(
        words(&text).starts_with("lower bound: the largest runs were cut short")
            && words(&text).contains("\u{2265}990M"),
        "{text}"
    );
}

#[test]
fn needs_of_cut_runs_are_lower_bounds_or_unknown() {
    let of = |runs: &[(&'static str, u64)]| {
        let jobs: Vec<_> = runs.iter().map(|(state, mib)| ("cut".to_string(), *state, *mib)).collect();
        let (found, text) = of(accounting(&jobs).path(), &["--gatherer", "linux"]);
        let row = text.lines().find(|line| line.starts_with("cut")).map(words).unwrap();
        (job(&found, "cut").clone(), row)
    };
    let (cut, row) = of(&[("TIMEOUT", 900), ("CANCELLED by 1000", 10), ("FAILED", 20)]);
    assert_eq!((&cut["median_bytes"], &cut["max_is_lower_bound"]), (&Value::Null, &true.into()));
    assert_eq!(row, "cut 3 (3 cut) - > 900M > 900M - 8.0G > 900M - - -");
    // One of three completed: a third needs at most 500 MiB, so the median is unknown.
    let (cut, row) = of(&[("COMPLETED", 500), ("TIMEOUT", 900), ("FAILED", 900)]);
    assert_eq!(cut["median_bytes"], Value::Null);
    assert!(row.starts_with("cut 3 (2 cut) - > 900M > 900M"), "{row}");
    // The median is known, the maximum is not.
    let (cut, row) = of(&[("COMPLETED", 500), ("COMPLETED", 600), ("TIMEOUT", 900)]);
    assert_eq!((mib(&cut, "median_bytes"), &cut["max_is_lower_bound"]), (600, &true.into()));
    assert!(row.starts_with("cut 3 (1 cut) 600M > 900M > 900M"), "{row}");
    // The largest run completed.
    let (cut, row) = of(&[("COMPLETED", 500), ("FAILED", 400)]);
    assert_eq!(cut["max_is_lower_bound"], false);
    assert!(row.starts_with("cut 2 (1 cut) 500M 500M 500M"), "{row}");
}

#[test]
fn a_lower_bound_is_never_rounded_up() {
    let text = "JobID|JobName|State|ElapsedRaw|MaxRSS|AllocTRES\n7|big|OUT_OF_MEMORY|600||mem=1000M\n\
                7.batch|batch|OUT_OF_MEMORY|600|990M|\n8|long|TIMEOUT|600||mem=4000M\n8.batch|batch|TIMEOUT|600|1010M|\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let (_, text) = of(file.path(), &["--gatherer", "linux"]);
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).map(words).unwrap();
    // It was killed at its limit, so it needed more.
    assert!(row("big").contains("- > 1000M > 1000M") && row("big").contains("> 1000M - - -"), "{text}");
    assert!(row("long").contains("- > 1010M > 1010M") && row("long").contains("> 1010M - - -"), "{text}");
}

#[test]
fn a_job_without_a_name_is_shown_as_no_name() {
    let (found, text) = of(accounting(&[(String::new(), "COMPLETED", 500)]).path(), &["--gatherer", "linux"]);
    assert_eq!(mib(job(&found, ""), "mem_bytes"), 550);
    assert!(text.lines().any(|line| line.starts_with("(no name)")), "{text}");
}

#[test]
fn requests_are_totals_and_steps_belong_to_their_job() {
    let (found, _) = of(&case("reqmem4n.txt"), &[]);
    let mpi = job(&found, "mpi");
    assert_eq!(mib(mpi, "asked_bytes"), 16 << 10);
    assert!((mpi["reserved_gib_hours"].as_f64().unwrap() - 64.0 / 6.0).abs() < 1e-9, "{mpi}");
    let (found, text) = of(&case("orphan.txt"), &["--gatherer", "cgroup"]);
    assert_eq!(mib(job(&found, "small"), "max_bytes"), 97);
    assert!(text.contains("left out, a step without the line of its job: line 4"), "{text}");
    assert_eq!(found["left_out"], 1);
}

#[test]
fn one_bad_line_does_not_refuse_the_file() {
    let (found, _) = of(&case("ReqMem16.txt"), &[]);
    assert_eq!((mib(job(&found, "a"), "max_bytes"), &job(&found, "a")["asked_bytes"]), (488, &Value::Null));
    let (found, _) = of(&case("namebar.txt"), &[]);
    assert_eq!((job(&found, "ok")["runs"].as_u64(), &found["left_out"]), (Some(1), &0.into()));
    let (found, _) = of(&case("Psuffix.txt"), &[]);
    assert_eq!(mib(job(&found, "a"), "asked_bytes"), 768 << 10);
    // Neither job has a step.
    assert!(refusal(&case("namenl.txt")).contains("jobs that have ended: 2;"));
    let folder = tempfile::tempdir().unwrap();
    let measured = folder.path().join("namenl");
    let step = |job| format!("{job}.batch|batch|COMPLETED|600|500000K|||cpu=2|1|2|1|mem=500000K|||\n");
    let lines = std::fs::read_to_string(case("namenl.txt")).unwrap();
    std::fs::write(&measured, lines + &step(7) + &step(8)).unwrap();
    let (found, _) = of(&measured, &["--gatherer", "cgroup"]);
    for name in ["a\nsecond line", "ok"] {
        assert_eq!(mib(job(&found, name), "max_bytes"), 488, "{name}");
    }
    assert!(refusal(&case("dup.json")).contains("jobs that have ended: 1;"));
    let path = folder.path().join("latin");
    let lines = b"\xef\xbb\xbfJobID|JobName|State|Elapsed|MaxRSS\r\n7|caf\xe9|COMPLETED|1-00:00:00|\r\n7.0|x|COMPLETED|1-00:00:00|50M\r\n\
                  8|b|COMPLETED|soon|\r\n9.0|x|RUNNING|much|x\r\n10|c\r\n";
    std::fs::write(&path, lines).unwrap();
    let (found, text) = of(&path, &["--gatherer", "linux"]);
    assert_eq!((mib(job(&found, "caf\u{e9}"), "max_bytes"), &found["left_out"]), (50, &4.into()), "{text}");
    for note in ["for Elapsed is no time: line 4", "with 2 fields instead of 5: line 6"] {
        assert!(text.contains(note), "{note}: {text}");
    }
}

#[test]
fn an_impossible_figure_counts_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exbibytes");
    let lines = "JobID|JobName|State|ElapsedRaw|MaxRSS|AllocTRES\n\
                 8|ok|COMPLETED|600||mem=8G\n8.batch|batch|COMPLETED|600|500000K|\n\
                 10|much|COMPLETED|600||mem=8G\n10.batch|batch|COMPLETED|600|1.2E|\n";
    std::fs::write(&path, lines).unwrap();
    let (found, text) = of(&path, &["--gatherer", "linux"]);
    let names: Vec<&Value> = found["jobs"].as_array().unwrap().iter().map(|job| &job["name"]).collect();
    assert_eq!(names, ["ok"], "{text}");
    assert!(
        text.contains("steps with a figure of 1 PiB or more, which no machine has") && !text.contains("killed 1"),
        "{text}"
    );
}

#[test]
fn requests_are_large_enough_to_start_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small");
    let small = "JobID|JobName|State|ElapsedRaw|MaxRSS|AllocTRES\n7|tiny|COMPLETED|600||mem=1G\n7.batch|batch|COMPLETED|600|2100K|\n";
    std::fs::write(&path, small).unwrap();
    let (found, text) = of(&path, &["--gatherer", "linux"]);
    assert_eq!(mib(job(&found, "tiny"), "mem_bytes"), 30, "MinRAMSpace: {text}");
}

#[test]
fn text_and_json_agree_except_for_memory_per_cpu() {
    for recording in ["22.05.8-linux", "22.05.8-cgroup", "24.11.5-linux", "24.11.5-cgroup"] {
        let gatherer = recording.rsplit('-').next().unwrap();
        let [json, text] = ["json", "txt"].map(|end| figures(&format!("slurm-{recording}.{end}"), gatherer));
        for of_json in json["jobs"].as_array().unwrap().iter().filter(|job| job["per"] == "node") {
            let other = job(&text, of_json["name"].as_str().unwrap());
            for name in ["runs", "cut_short", "asked_bytes", "killed", "reserved_gib_hours"] {
                assert_eq!(of_json[name], other[name], "{name}: {of_json} {other}");
            }
            // Text is rounded to KiB or hundredths of MiB.
            let name = if of_json["mem_bytes"].is_null() { "max_bytes" } else { "mem_bytes" };
            assert!(mib(of_json, name).abs_diff(mib(other, name)) <= 1, "{of_json} {other}");
        }
    }
}

#[test]
fn a_table_from_a_pipe_reports_the_saving() {
    let file = std::fs::File::open(recorded("slurm-22.05.8-linux.json")).unwrap();
    let output = bursar().args(["recommend", "--from", "-", "--percentile", "50%"]).stdin(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // The file does not name the gatherer.
    assert!(text.starts_with("not sure: what MaxRSS holds is not known"), "{text}");
    assert!(text.contains("past jobs: asking for --mem would have saved"), "{text}");
    assert!(text.contains("50 % need") && text.contains("solver") && text.contains("Give --gatherer"), "{text}");
}

#[test]
fn malformed_lines_and_missing_columns_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |content: &str, complaint: &str| {
        let path = folder.path().join("jobs");
        std::fs::write(&path, content).unwrap();
        let output = recommend(&[], &path);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(125) && stderr.contains(complaint) && stderr.lines().count() == 1,
            "{stderr}"
        );
    };
    fails("", "jobs is empty. Write what sacct prints to it: sacct --json, or sacct -P -o JobID,");
    fails(" \n\n", "jobs is empty.");
    fails("{\"jobs\": [{\"name\": 7}]}", "left out, without a state: job number 1");
    fails("{\"jobs\": [", "EOF");
    fails("{\"jobs\": []}", "has no job.");
    fails("JobID|JobName|State|ElapsedRaw|MaxRSS\n", "jobs has no job. Print jobs that have ended");
    fails("JobID|JobName|State|ElapsedRaw|MaxRSS\n7|a|RUNNING|5|\n", "jobs has one job, and it has not ended.");
    fails("JobID|State\n", "no column MaxRSS");
    fails(
        "JobID|JobName|State|ElapsedRaw|MaxRSS\n1|a|COMPLETED|60|\n1.0|a|COMPLETED|60|lots\n",
        "left out, for MaxRSS is no size: line 3",
    );
    let missing = recommend(&[], Path::new("/no/such/file"));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("/no/such/file could not be read"));
}

#[test]
fn without_sacct_the_use_of_a_file_is_advised() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bursar();
    let command = command.args(["recommend", "--user", "ada", "--days", "7"]).env("PATH", folder.path());
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(125) && error.lines().count() == 1, "{error}");
    assert!(error.contains("sacct could not be run"), "{error}");
    assert!(error.contains("sacct --json -S now-7days >jobs.json") && error.contains("--from jobs.json"), "{error}");
}

#[test]
fn sacct_gets_the_user_and_the_days() {
    let folder = tempfile::tempdir().unwrap();
    let sacct = folder.path().join("sacct");
    // An old sacct without --json. It prints a recording, with its day moved to yesterday, within the last seven days.
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>{}/asked\n[ \"$1\" = --json ] && {{ echo \"sacct: unrecognized option '--json'\" >&2; exit 1; }}\nsed \"s/2026-11-22/$(date -d yesterday +%F)/g\" {}\n",
        folder.path().display(),
        recorded("slurm-22.05.8-linux.txt").display()
    );
    std::fs::write(&sacct, script).unwrap();
    std::fs::set_permissions(&sacct, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let asked = |program: &mut Command| program.env("PATH", &path).env("SLURM_CONF", "/dev/null").output().unwrap();
    let output = asked(bursar().args(["recommend", "--user", "nobody", "--days", "7"]));
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("solver"), "{output:?}");
    let asked_for = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    let lines: Vec<&str> = asked_for.lines().collect();
    assert!(lines[0] == "--json --starttime=now-7days --user=nobody", "{asked_for}");
    assert!(
        lines[1].starts_with("--parsable2 --format JobID,JobName,") && lines[1].ends_with("--user=nobody"),
        "{asked_for}"
    );
    assert!(lines[1].contains(",Comment ") && lines[2] == "--version", "{asked_for}");
}
