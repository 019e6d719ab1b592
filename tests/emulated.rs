//! `bursar budget` with emulated limits: without root, a cgroup or Slurm.

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{Programs, bursar, bursar_as_nobody, is_root, json_of};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A folder on disk that every user may write to.
fn folder() -> TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn random_file(folder: &Path, mib: u64) {
    let mut file = fs::File::create(folder.join("input")).unwrap();
    let mut state = 1u64;
    let mut block = vec![0u8; MIB as usize];
    for _ in 0..mib {
        for word in block.chunks_exact_mut(8) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&block).unwrap();
    }
}

/// Runs with emulated limits as a user without root, even where cgroups are available.
fn emulating(folder: &Path, words: &[&str]) -> Command {
    let mut command = if is_root() { bursar_as_nobody(folder) } else { bursar() };
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    command.current_dir(folder).env("TMPDIR", folder).env("LC_ALL", "C").env("BURSAR_FORCE_RUNG", "emulated-limits");
    command.args(words);
    command
}

fn budget(folder: &Path) -> Command {
    emulating(folder, &["budget", "-q", "--no-compare"])
}

fn answer(folder: &Path, words: &[&str]) -> Value {
    let (status, json) = json_of(budget(folder).args(["--json", "-", "--"]).args(words));
    assert_eq!(status, 0, "{json}");
    assert_eq!(json["limit_source"], "emulated", "{json}");
    json
}

#[test]
fn memory_held_between_two_samples_is_in_the_answer() {
    let folder = folder();
    let burst = "import time; time.sleep(.6); held = bytearray(40 << 20); del held; time.sleep(.6)";
    let json = answer(folder.path(), &["/usr/bin/python3", "-c", burst]);
    let mib = json["budget_bytes"].as_u64().unwrap() / MIB;
    // Python itself has some 4 MiB of heap, and maps 6 MiB of files.
    assert!((40..=56).contains(&mib), "{mib} MiB: {json:#}");
}

#[test]
fn memory_of_simultaneous_short_processes_is_in_the_answer() {
    let folder = folder();
    let three = "for i in 1 2 3; do /usr/bin/python3 -c 'bytearray(30 << 20)' & done; wait";
    let json = answer(folder.path(), &["sh", "-c", three]);
    let mib = json["budget_bytes"].as_u64().unwrap() / MIB;
    assert!((90..=140).contains(&mib), "{mib} MiB: {json:#}");
    assert!(!json["reason"].as_str().unwrap().contains("sizes itself"), "{json:#}");
}

/// A Python program of 100 MiB with four forks, each of which writes to a part of it, under a limit.
fn forks_under(limit: &str, written_mib: u32) -> (i32, Value) {
    let folder = folder();
    let script = format!(
        "import os, time\nheap = bytearray(100 << 20)\nfor _ in range(4):\n if not os.fork():\n  for at in range(0, {written_mib} << \
         20, 4096): heap[at] = 1\n  time.sleep(.8)\n  os._exit(0)\nfor _ in range(4): os.wait()"
    );
    let run = ["run", "-q", "--limit", limit, "--json", "-", "--", "/usr/bin/python3", "-c", &script];
    json_of(&mut emulating(folder.path(), &run))
}

#[test]
fn memory_that_forks_share_counts_once_under_a_limit() {
    let peak = |json: &Value| json["peak_charge_bytes"].as_u64().unwrap() / MIB;
    let (status, json) = forks_under("140M", 0);
    assert_eq!(status, 0, "{json:#}");
    assert!((100..=116).contains(&peak(&json)), "{json:#}");
    let (_, json) = forks_under("140M", 40);
    assert_eq!(json["exit_status"], 128 + 9, "the copies are more than the limit leaves: {json:#}");
    let (status, json) = forks_under("400M", 40);
    assert_eq!(status, 0, "{json:#}");
    assert!((260..=280).contains(&peak(&json)), "{json:#}");
}

#[test]
fn a_command_that_was_ended_as_a_whole_reports_it() {
    let folder = folder();
    let script = "/usr/bin/python3 -c 'import time; heap = bytearray(150 << 20); time.sleep(.5)'; exit 0";
    let output = emulating(folder.path(), &["run", "--limit", "100M", "--", "/bin/sh", "-c", script]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("killed for lack of memory under an emulated limit of 100 MiB"), "{printed}");
    assert!(
        printed.contains("bursar ended the whole command where the kernel would have killed one of its processes"),
        "{printed}"
    );
}

#[test]
fn memory_that_forks_copy_is_in_the_answer() {
    let folder = folder();
    let script = "import os, time\nheap = bytearray(80 << 20)\nfor _ in range(4):\n if not os.fork():\n  for at in range(0, 20 << \
                  20, 4096): heap[at] = 1\n  time.sleep(.3)\n  os._exit(0)\nfor _ in range(4): os.wait()";
    let json = answer(folder.path(), &["/usr/bin/python3", "-c", script]);
    let mib = json["budget_bytes"].as_u64().unwrap() / MIB;
    assert!((160..=200).contains(&mib), "{mib} MiB: {json:#}");
}

#[test]
fn daemons_of_a_run_do_not_count_in_the_next() {
    let folder = folder();
    let daemon = "import time; heap = bytearray(50 << 20); open(\"there\", \"w\").close(); time.sleep(60.4321)";
    let script = format!(
        "rm -f there; setsid /usr/bin/python3 -c '{daemon}' > /dev/null 2>&1 < /dev/null &\n\
         until [ -e there ]; do sleep .1; done; sleep .4; /usr/bin/python3 -c 'bytearray(20 << 20)'"
    );
    let json = answer(folder.path(), &["sh", "-c", &script]);
    let mib = json["budget_bytes"].as_u64().unwrap() / MIB;
    assert!((70..=130).contains(&mib), "{mib} MiB: {json:#}");
    let left = Command::new("pgrep").args(["-f", "sleep[(]60.4321"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
}

#[test]
fn the_answer_for_a_short_program_is_its_memory() {
    let folder = folder();
    let json = answer(folder.path(), &["/usr/bin/python3", "-c", "bytearray(200 << 20)"]);
    let mib = json["budget_bytes"].as_u64().unwrap() / MIB;
    assert!((200..=224).contains(&mib), "{mib} MiB: {json:#}");
}

#[test]
fn an_answer_is_at_least_one_mebibyte() {
    let folder = folder();
    let json = answer(folder.path(), &["true"]);
    assert!(json["budget_bytes"].as_u64().unwrap() >= MIB, "{json:#}");
}

#[test]
fn a_loop_over_a_file_needs_its_heap_and_the_file() {
    let folder = folder();
    random_file(folder.path(), 192);
    let json = answer(folder.path(), &["sh", "-c", "cat input input input input input input >/dev/null"]);
    let mib = json["budget_bytes"].as_u64().unwrap() / MIB;
    // A limit slightly below the file's size loses the whole file.
    assert!((180..=225).contains(&mib), "{mib} MiB: {json}");
    let trials = json["trials"].as_array().unwrap();
    let peak = trials[0]["peak_charge_bytes"].as_u64().unwrap() / MIB;
    assert!((190..=215).contains(&peak), "{peak} MiB without a limit: {json}");
    let limited = trials.iter().filter(|trial| trial["limit_bytes"].is_u64());
    for trial in limited {
        let (limit, again) = (trial["limit_bytes"].as_u64().unwrap(), trial["refaults"].as_u64().unwrap());
        if limit < 170 * MIB {
            assert!(again > 20_000, "it was read again: {trial}");
        }
        if limit > 215 * MIB {
            assert!(again < 5_000, "it was kept: {trial}");
        }
    }
}

#[test]
fn small_files_that_are_closed_at_once_are_in_the_answer() {
    let folder = folder();
    fs::create_dir(folder.path().join("all")).unwrap();
    for number in 0..700u32 {
        fs::write(folder.path().join(format!("all/{number}")), vec![number as u8; 65536]).unwrap();
    }
    let six_times = "for i in 1 2 3 4 5 6; do cat all/* | wc -c; done";
    let json = answer(folder.path(), &["sh", "-c", six_times]);
    let need = json["budget_bytes"].as_u64().unwrap();
    assert!((44 * MIB..56 * MIB).contains(&need), "{} MiB: {json}", need / MIB);
}

#[test]
fn memory_that_cannot_be_reclaimed_is_a_lower_bound() {
    let folder = folder();
    let hold = "import time; heap = bytearray(b'x') * (100 << 20); time.sleep(0.7)";
    let json = answer(folder.path(), &["python3", "-c", hold]);
    let mib = json["budget_bytes"].as_u64().unwrap() / MIB;
    assert!((103..=125).contains(&mib), "{mib} MiB: {json}");
}

#[test]
fn a_static_program_is_refused_with_the_next_step() {
    let folder = folder();
    let programs = Programs::build();
    let output = budget(folder.path()).args(["--", programs.footprint(), "private", "10M"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("they cannot be emulated: "), "{stderr}");
    assert!(stderr.contains("bursar doctor"), "{stderr}");
}

#[test]
fn files_mapped_by_a_static_program_make_the_answer_unsure() {
    let folder = folder();
    random_file(folder.path(), 64);
    let programs = Programs::build();
    // The shell has the library; the program it becomes is static and has not.
    let json = answer(folder.path(), &["sh", "-c", &format!("exec {} input 300", programs.mapped())]);
    assert!(!is_bound(&json), "{json}");
}

#[test]
fn files_read_by_a_static_program_make_the_answer_unsure() {
    let folder = folder();
    random_file(folder.path(), 64);
    // Like any program that makes system calls without libc.
    let reads = "int main(int count, char **words) { static char block[1 << 16]; for (int pass = 0; pass < 4; pass++) { \
                 int file = open(words[1], 0); while (read(file, block, sizeof block) > 0) {} close(file); } return count == 0; }";
    fs::write(folder.path().join("reads.c"), format!("#include <fcntl.h>\n#include <unistd.h>\n{reads}")).unwrap();
    let built = Command::new("cc").current_dir(folder.path()).args(["-static", "-o", "reads", "reads.c"]).status();
    assert!(built.unwrap().success());
    let json = answer(folder.path(), &["sh", "-c", "./reads input; true"]);
    assert!(!is_bound(&json), "{json}");
}

/// Whether an answer is confident, and without the doubt that emulated limits did not bind all.
fn is_bound(json: &Value) -> bool {
    let is_doubt = |doubt: &Value| doubt["sentence"].as_str().unwrap().contains("the emulated limits did not bind ");
    json["confident"] == true || !json["doubts"].as_array().unwrap().iter().any(is_doubt)
}
