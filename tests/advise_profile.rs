//! `bursar advise profile` on programs whose memory accesses are known.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use advise::{Mapping, Profile, ProfiledRange};
use support::{PID_NAMESPACE, Programs, bursar, bursar_as_nobody, can_unshare, huge_pages_alone, is_root, need};

const REGION: u64 = 2 << 20;

fn profile(options: &[&str], command: &[&str]) -> Command {
    let mut all = bursar();
    all.args(["advise", "profile"]).args(options).arg("--").args(command);
    all
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts one of the tests' programs and waits until it has filled its memory; it runs until its standard input is closed.
fn started(command: &mut Command) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(u64::from_str_radix(line.trim(), 16).is_ok(), "{line}");
    child
}

/// The ranges of a program that ran this long, started by a command; and standard error.
fn profiled(folder: &Path, by: &[&str], what: &str, mib: &str, seconds: u64) -> (Vec<ProfiledRange>, String) {
    let path = folder.join("it.profile");
    let programs = Programs::build();
    let words = [by, &[programs.advised(), what, mib]].concat();
    let child = started(profile(&["-o", path.to_str().unwrap()], &words).stderr(Stdio::piped()));
    std::thread::sleep(Duration::from_secs(seconds));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let profile = Profile::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let found = profile.programs.into_iter().find(|program| program.name == "advised");
    (found.map(|program| program.ranges).unwrap_or_default(), stderr(&output))
}

/// The same with longer and longer runs, until `is_seen`: on a busy machine, a profiler that is limited to its share of the processor makes
/// few scans.
fn profiled_until(
    by: &[&str],
    what: &str,
    mib: &str,
    is_seen: impl Fn(&[ProfiledRange]) -> bool,
) -> (Vec<ProfiledRange>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut last = (Vec::new(), String::new());
    for seconds in [5, 20, 60] {
        last = profiled(folder.path(), by, what, mib, seconds);
        if is_seen(&last.0) {
            break;
        }
    }
    last
}

/// Whether page tables can be read here.
fn can_scan() -> bool {
    is_root() && need("page tables that BPF can read (Linux 6.1 on x86-64)", linux::pages::available().is_ok())
}

/// Regions for which huge pages save more than ten times the median.
fn hot(ranges: &[ProfiledRange]) -> Vec<u64> {
    let each = ranges.iter().flat_map(|range| regions(range).map(|region| (region, range.huge_ns.unwrap())));
    let mut worth: Vec<u64> = each.clone().map(|(_, ns)| ns).collect();
    worth.sort_unstable();
    let usual = worth.get(worth.len() / 2).copied().unwrap_or_default();
    each.filter(|(_, ns)| *ns > 10 * usual).map(|(region, _)| region).collect()
}

/// The regions that a range contains.
fn regions(range: &ProfiledRange) -> std::ops::Range<u64> {
    range.from / REGION..range.to.unwrap() / REGION
}

#[test]
fn often_accessed_memory_is_worth_huge_pages_and_the_rest_not() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    let every_tenth: Vec<u64> = (0..128).step_by(10).collect();
    let (ranges, errors) = profiled_until(&[], "skewed", "256", |ranges| hot(ranges) == every_tenth);
    assert_eq!(hot(&ranges), every_tenth, "{ranges:?} {errors}");
    for range in &ranges {
        assert_eq!(range.mapping, Mapping::Mmap { class: Some(28), ordinal: Some(0) });
        assert_eq!(range.touched, Some(1.0), "{range}");
        // Rare accesses are sampled: their number differs from region to region.
        let least = if range.huge_ns > Some(1_000_000) { 0.5 } else { 0.1 };
        assert!((least..1.0).contains(&range.confidence), "{range}");
    }
    assert!(errors.contains("256 MiB of memory in "), "{errors}");
    assert!(errors.contains(" save nine tenths of that: --huge-pages "), "{errors}");
}

#[test]
fn huge_page_trials_save_at_most_the_programs_time() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tried = [15, 30, 60].into_iter().find_map(|seconds| {
        let (ranges, errors) = profiled(folder.path(), &[], "chases", "512", seconds);
        errors.contains("tried while it ran: huge pages for ").then_some((ranges, seconds, errors))
    });
    let (ranges, seconds, errors) = tried.expect("there is time for a trial within a minute");
    let saved_ns: u64 = ranges.iter().map(|range| range.huge_ns.unwrap() * regions(range).count() as u64).sum();
    // The time of a trial, during which nothing is scanned, must be counted once: it once made the saving three times the run's time.
    assert!((1..seconds * 500_000_000).contains(&saved_ns), "{ranges:?} {errors}");
}

#[test]
fn sparse_memory_is_marked_by_its_share_of_touched_pages() {
    if !can_scan() {
        return;
    }
    sparse_is_known(&[]);
}

/// The program's own PID differs from the one that bursar sees.
#[test]
fn a_program_in_a_pid_namespace_is_profiled() {
    if can_scan() && can_unshare(&PID_NAMESPACE[1..]) {
        sparse_is_known(&PID_NAMESPACE);
    }
}

fn sparse_is_known(by: &[&str]) {
    let is_whole = |ranges: &[ProfiledRange]| {
        ranges.iter().flat_map(regions).count() == 32 && ranges.iter().all(|range| range.huge_ns.is_some())
    };
    let (ranges, errors) = profiled_until(by, "sparse", "64", is_whole);
    assert_eq!(ranges.len(), 1, "{ranges:?} {errors}");
    assert_eq!((ranges[0].huge_ns, ranges[0].touched, regions(&ranges[0])), (Some(0), Some(0.06), 0..32), "{errors}");
}

#[test]
fn run_follows_the_profile_for_each_range() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it.profile");
    let programs = Programs::build();
    let program = programs.advised();
    // In the skewed program much memory gains by huge pages, in the sparse one none does.
    for (what, worth) in [("skewed", 4 * REGION..=64 << 20), ("sparse", 0..=0)] {
        let ranges = [5, 20, 60].into_iter().find_map(|seconds| {
            let (ranges, _) = profiled(folder.path(), &[], what, "64", seconds);
            (ranges.iter().flat_map(regions).count() == 32).then_some(ranges)
        });
        let ranges = ranges.expect("a minute is enough to profile all of it").len() as u64;
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("\ncommand {program} {what} 64\n")), "{text}");
        let checked = bursar().args(["advise", "check"]).arg(&file).output().unwrap();
        assert!(checked.status.success(), "{}", stderr(&checked));
        let stats = folder.path().join("stats.json");
        let mut run = bursar();
        run.args(["advise", "run", "--profile"])
            .arg(&file)
            .arg("--stats")
            .arg(&stats)
            .args(["--", program, what, "64"]);
        let output = started(run.stderr(Stdio::piped())).wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
        let process = &stats["processes"][0];
        assert_eq!(
            (process["rules_matched"].as_u64(), process["rules_unmatched"].as_u64()),
            (Some(ranges), Some(0)),
            "{text}"
        );
        assert!(worth.contains(&process["advised_bytes"].as_u64().unwrap()), "{text} {}", stderr(&output));
    }
}

#[test]
fn output_and_status_are_the_commands_and_names_the_profile() {
    if !can_scan() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = profile(&[], &["sh", "-c", "echo out; exit 3"]).current_dir(folder.path()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"out\n"[..]));
    assert!(stderr(&output).contains("it ended too soon to be seen well"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(folder.path().join("sh.profile")).unwrap(), "bursar profile 1\n");
    let mut fixed = profile(&["-q", "-o", "-"], &[Programs::build().footprint(), "private", "1M"]);
    let output = fixed.output().unwrap();
    assert!(
        stderr(&output).lines().count() == 1 && stderr(&output).contains("statically linked"),
        "{}",
        stderr(&output)
    );
    let output = profile(&["-q", "-o", "-"], &["true"]).output().unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice(), stderr(&output).as_str()),
        (Some(0), &b"bursar profile 1\n"[..], "")
    );
}

#[test]
fn each_obstacle_is_reported_in_one_sentence() {
    if !can_scan() {
        return;
    }
    let output = profile(&["-o", "/nowhere/x"], &["true"]).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(125), 1), "{}", stderr(&output));
    assert!(stderr(&output).contains("/nowhere/x"), "{}", stderr(&output));
    let output = profile(&["-o", "-"], &["/nowhere/command"]).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(127), 1), "{}", stderr(&output));
}

#[test]
fn without_privilege_the_profile_has_touched_pages_and_run_uses_it() {
    let _alone = huge_pages_alone();
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let programs = Programs::build();
    let program = folder.path().join("advised");
    support::copy_program(programs.advised().as_ref(), &program);
    let file = folder.path().join("it.profile");
    let unprivileged = |options: &[&str], what: &str| {
        let mut command = bursar_as_nobody(folder.path());
        command.env("HOME", folder.path()).arg("advise").args(options).arg("--").arg(&program).args([what, "64"]);
        started(command.stderr(Stdio::piped())).wait_with_output().unwrap()
    };
    for (what, touched, is_huge) in [("skewed", 1.0, true), ("sparse", 0.06, false)] {
        let output = unprivileged(&["profile", "-o", "-"], what);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("not what is accessed often; that needs CAP_SYS_NICE"), "{}", stderr(&output));
        std::fs::write(&file, &output.stdout).unwrap();
        let profile = Profile::parse(&String::from_utf8_lossy(&output.stdout)).unwrap();
        let [range] = &profile.programs[0].ranges[..] else { panic!("{profile:?}") };
        assert_eq!((range.huge_ns, range.touched, regions(range)), (None, Some(touched), 0..32));
        let stats = folder.path().join("stats.json");
        std::fs::write(&stats, "").unwrap();
        std::fs::set_permissions(&stats, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let options = ["run", "--profile", file.to_str().unwrap(), "--stats", stats.to_str().unwrap()];
        let output = unprivileged(&options, what);
        assert!(output.status.success(), "{}", stderr(&output));
        let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
        let advised_bytes = stats["processes"][0]["advised_bytes"].as_u64().unwrap();
        assert_eq!(advised_bytes >= 64 << 20, is_huge, "{advised_bytes} {}", stderr(&output));
    }
}

#[test]
fn without_privilege_a_killed_program_is_not_reported_as_empty() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mut command = bursar_as_nobody(folder.path());
    command.env("HOME", folder.path()).args(["advise", "profile", "-o", "-", "--", "sh", "-c", "kill -9 $$"]);
    let output = command.output().unwrap();
    assert_eq!(output.stdout, b"bursar profile 1\n");
    assert!(stderr(&output).contains("ended by force"), "{}", stderr(&output));
}

#[test]
fn without_privilege_touched_pages_are_known_after_any_end() {
    let _alone = huge_pages_alone();
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    for end in ["os.kill(os.getpid(), 9)", "os._exit(0)", "os.execv('/bin/true', ['true'])"] {
        let script = format!("import os, time; filled = b'.' * (64 << 20); time.sleep(2); {end}");
        let mut command = bursar_as_nobody(folder.path());
        command.env("HOME", folder.path()).args(["advise", "profile", "-o", "-", "--", "/usr/bin/python3", "-c"]);
        let output = command.arg(script).output().unwrap();
        let profile = Profile::parse(&String::from_utf8_lossy(&output.stdout)).unwrap();
        let python = profile.programs.iter().find(|program| program.name.starts_with("python"));
        let ranges = &python.unwrap_or_else(|| panic!("{end}: {}", stderr(&output))).ranges;
        // It may begin and end in the middle of a region.
        let filled = ranges.iter().find(|range| regions(range).count() >= 30);
        assert!(filled.and_then(|range| range.touched) >= Some(0.95), "{end}: {ranges:?}");
    }
}
