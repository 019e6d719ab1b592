//! Reports for a user without root and without a cgroup, on programs of known size.

mod support;

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Programs, bursar, bursar_as_nobody, can_hide_cgroups, copy_program, json_of, need, without_cgroups};

const MIB: u64 = 1 << 20;

/// Runs a Python program as nobody where no cgroup is visible.
fn run(script: &str) -> Value {
    run_words(&["python3", "-c", script])
}

fn run_shell(script: &str) -> Value {
    run_words(&["sh", "-c", script])
}

fn run_words(words: &[&str]) -> Value {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mut nobody = bursar_as_nobody(folder.path());
    nobody.args(["run", "-q", "--json", "-", "--"]).args(words);
    let (status, json) = json_of(&mut without_cgroups(&nobody));
    assert_eq!(status, 0, "{json:#}");
    assert!(json["peak_charge_bytes"].is_null(), "a cgroup is visible: {json:#}");
    json
}

/// The lower and the upper bound of a line, in MiB.
fn bounds(json: &Value, line: &str) -> (u64, u64) {
    let of = |breakdown: &str| json[breakdown][line].as_u64().unwrap_or_else(|| panic!("no {line}: {json:#}")) / MIB;
    (of("peak_breakdown_at_least"), of("peak_breakdown"))
}

/// The bounds of the floor, in MiB.
fn floor(json: &Value) -> (u64, u64) {
    let least = json["floor_bytes"].as_u64().unwrap();
    (least / MIB, json["floor_at_most_bytes"].as_u64().unwrap_or(least) / MIB)
}

fn is_near(bounds: (u64, u64), mib: u64) -> bool {
    // An interpreter has some memory of its own.
    (mib..=mib + 16).contains(&bounds.0) && (mib..=mib + 16).contains(&bounds.1)
}

#[test]
fn heap_of_one_process_is_exact_without_a_cgroup() {
    if !can_hide_cgroups() {
        return;
    }
    let json = run("import time\nheap = bytearray(200 << 20)\ntime.sleep(0.5)");
    assert!(is_near(bounds(&json, "heap"), 200) && is_near(floor(&json), 200), "{json:#}");
    for line in ["heap", "file", "shared", "kernel"] {
        assert!(json["peak_breakdown"][line].is_u64() && json["floor_breakdown"][line].is_u64(), "{line}: {json:#}");
    }
    // 200 MiB take 400 KiB of page tables.
    assert!(json["peak_breakdown"]["kernel"].as_u64().unwrap() >= 400 << 10, "{json:#}");
}

#[test]
fn heap_that_forks_share_counts_once() {
    if !can_hide_cgroups() {
        return;
    }
    let forks = |seconds: f64| {
        run(&format!(
            "import os, time\nheap = bytearray(100 << 20)\npids = []\nfor _ in range(4):\n pid = os.fork()\n if not pid:\n  \
             time.sleep({seconds})\n  os._exit(0)\n pids.append(pid)\nfor pid in pids: os.waitpid(pid, 0)"
        ))
    };
    // By their page faults, and by their proportional set sizes.
    for json in [forks(0.01), forks(0.1), forks(3.0)] {
        assert!(is_near(bounds(&json, "heap"), 100) && is_near(floor(&json), 100), "{json:#}");
        assert!(json["tree_held_at_most_bytes"].as_u64().unwrap() / MIB <= 130, "{json:#}");
    }
}

#[test]
fn files_that_short_processes_share_count_once() {
    if !can_hide_cgroups() {
        return;
    }
    let one = unsampled("python3 -c 'import json'; exit 0");
    let eight = unsampled("for i in 1 2 3 4 5 6 7 8; do python3 -c 'import json' & done; wait; exit 0");
    let (one, eight) = (bounds(&one, "file").1, bounds(&eight, "file").1);
    assert!(eight <= 2 * one, "{eight} MiB of eight, {one} MiB of one");
}

#[test]
fn shared_memory_of_two_processes_is_within_its_bounds() {
    if !can_hide_cgroups() {
        return;
    }
    let json = run(
        "import mmap, os, time\nshared = mmap.mmap(-1, 100 << 20)\npid = os.fork()\nfor at in range(0, 100 << 20, 4096): \
         shared[at] = 1\ntime.sleep(1)\nif pid: os.waitpid(pid, 0)",
    );
    let (least, most) = bounds(&json, "shared");
    assert!(least == 100 && (100..=200).contains(&most), "{json:#}");
    let (least, most) = floor(&json);
    assert!((100..=130).contains(&least) && (100..=240).contains(&most), "{json:#}");
}

#[test]
fn mapped_files_are_no_floor() {
    if !can_hide_cgroups() {
        return;
    }
    let json = run(
        "import mmap, tempfile, time\nfile = tempfile.TemporaryFile(dir='/var/tmp')\nfor _ in range(100): file.write(bytes(1 << 20))\n\
         file.flush()\nmapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\nsum(mapped[at] for at in range(0, 100 << 20, \
         4096))\ntime.sleep(0.5)",
    );
    let (least, most) = bounds(&json, "file");
    assert!(least >= 100 && most <= 130, "{json:#}");
    assert!(floor(&json).1 < 30, "{json:#}");
}

#[test]
fn memory_of_an_unsampled_program_is_in_the_floor() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = folder.path().join("footprint");
    copy_program(Programs::build().footprint().as_ref(), &program);
    let mut nobody = bursar_as_nobody(folder.path());
    nobody.args(["run", "-q", "--json", "-", "--interval", "60s", "--"]).arg(&program);
    nobody.args(["private", "100M", "--hold", "0"]);
    let output = without_cgroups(&nobody).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let json: Value = serde_json::from_str(&text[text.find("\n{").map_or(0, |at| at + 1)..]).unwrap();
    let (least, most) = bounds(&json, "heap");
    assert!(least <= 104 && most >= 100, "{json:#}");
    assert!((100..=104).contains(&floor(&json).0), "{json:#}");
}

/// Runs as nobody, sampled only at the beginning and the end.
fn unsampled(script: &str) -> Value {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mut nobody = bursar_as_nobody(folder.path());
    nobody.args(["run", "-q", "--json", "-", "--interval", "60s", "--", "sh", "-c", script]);
    let (status, json) = json_of(&mut without_cgroups(&nobody));
    assert_eq!(status, 0, "{json:#}");
    json
}

#[test]
fn unsampled_processes_are_reported_by_the_library() {
    if !can_hide_cgroups() {
        return;
    }
    let json = unsampled("for mib in 20 30 40; do python3 -c \"bytearray($mib << 20)\"; done; exit 0");
    assert_eq!(json["processes"], 4, "{json:#}");
    assert!(!json["notes"].to_string().contains("may be missing"), "{json:#}");
    assert!(is_near(bounds(&json, "heap"), 40) && is_near(floor(&json), 40), "{json:#}");
    let (least, most) = bounds(&json, "file");
    assert!(least > 0 && most < 16, "{json:#}");
    assert_eq!(
        (json["peak_breakdown"]["shared"].as_u64(), &json["doubts"]),
        (Some(0), &serde_json::json!([])),
        "{json:#}"
    );
}

#[test]
fn processes_that_lived_at_the_same_time_are_within_the_bounds() {
    if !can_hide_cgroups() {
        return;
    }
    // Each waits for the other while it holds all its memory.
    let meet = |mib: u32, to: &str, from: &str| {
        format!("python3 -c \"heap = bytearray({mib} << 20); open('{to}', 'w').close(); open('{from}').close()\"")
    };
    let pipes = tempfile::tempdir_in("/tmp").unwrap();
    let pipe = |name: &str| pipes.path().join(name).display().to_string();
    let (one, other) = (pipe("one"), pipe("other"));
    for name in [&one, &other] {
        assert!(Command::new("mkfifo").args(["-m", "666", name]).status().unwrap().success());
    }
    std::fs::set_permissions(pipes.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let second =
        format!("python3 -c \"heap = bytearray(40 << 20); open('{one}').close(); open('{other}', 'w').close()\"");
    let json = unsampled(&format!("{} & {second}; wait", meet(30, &one, &other)));
    let held = |name: &str| json[name].as_u64().unwrap() / MIB;
    assert!((40..=60).contains(&held("tree_held_at_least_bytes")), "{json:#}");
    assert!((70..=100).contains(&held("tree_held_at_most_bytes")), "{json:#}");
    assert!(floor(&json).0 >= 40 && (70..=90).contains(&floor(&json).1), "{json:#}");
}

#[test]
fn heap_that_was_freed_before_the_peak_is_in_the_floor() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![1; 100 << 20]).unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = format!(
        "python3 -c \"import mmap; heap = bytearray(20 << 20); del heap; file = open('{}', 'rb'); mapped = mmap.mmap(file.fileno(), 0, \
         prot=mmap.PROT_READ); sum(mapped[::4096])\"; exit 0",
        file.display()
    );
    let json = unsampled(&script);
    assert!(is_near(floor(&json), 20), "{json:#}");
    let (least, most) = bounds(&json, "file");
    assert!(least >= 100 && most < 130, "{json:#}");
}

#[test]
fn memory_of_killed_processes_is_within_the_upper_bound() {
    if !can_hide_cgroups() {
        return;
    }
    let killed = "python3 -c 'import os; heap = bytearray(30 << 20); os.kill(os.getpid(), 9)'";
    let json = unsampled(&format!("{killed} & {killed} & wait; exit 0"));
    let held = |name: &str| json[name].as_u64().unwrap() / MIB;
    assert!(held("tree_held_at_most_bytes") >= 60, "{json:#}");
    assert!(json["doubts"].to_string().contains("only the kernel's totals are known"), "{json:#}");
}

/// A sample may find a process with all its page faults but without memory, just before its end.
#[test]
fn memory_of_static_programs_is_within_the_upper_bound() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let source =
        "#include <stdlib.h>\n#include <string.h>\nint main(void) { return !memset(malloc(60 << 20), 1, 60 << 20); }\n";
    std::fs::write(folder.path().join("fills.c"), source).unwrap();
    let built = Command::new("cc").current_dir(folder.path()).args(["-static", "-o", "fills", "fills.c"]).status();
    assert!(built.unwrap().success());
    let fills = folder.path().join("fills").display().to_string();
    for _ in 0..8 {
        let json = run_shell(&format!("{fills} & {fills} & wait; exit 0"));
        let held = |name: &str| json[name].as_u64().unwrap() / MIB;
        assert!(held("tree_held_at_most_bytes") >= 119, "{json:#}");
        assert!(floor(&json).1 >= 118, "{json:#}");
    }
}

/// Children that live for 2 ms, of a program that no library can be loaded into: nothing tells of them but the count of page faults.
#[test]
fn short_children_of_a_static_program_are_within_the_upper_bound() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let source = "#define _GNU_SOURCE\n#include <sys/mman.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
                  int main(void) {\n  usleep(200000);\n  for (int i = 0; i < 4; i++)\n    if (!fork()) {\n      \
                  mmap(0, 40 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);\n      usleep(2000);\n      _exit(0);\n    \
                  }\n  while (wait(0) > 0);\n}\n";
    std::fs::write(folder.path().join("forks.c"), source).unwrap();
    let built = Command::new("cc").current_dir(folder.path()).args(["-static", "-o", "forks", "forks.c"]).status();
    assert!(built.unwrap().success());
    for _ in 0..4 {
        let json = run_words(&[&folder.path().join("forks").display().to_string()]);
        assert!(json["tree_held_at_most_bytes"].as_u64().unwrap() / MIB >= 160, "{json:#}");
        assert!(floor(&json).1 >= 159, "{json:#}");
    }
}

#[test]
fn memory_of_sockets_is_in_the_floor() {
    if !can_hide_cgroups() {
        return;
    }
    let fill = "import socket, time\nall = [socket.socketpair() for _ in range(100)]\nfor one, other in all:\n  one.setblocking(0)\n  \
                try:\n    while True: one.send(bytes(65536))\n  except BlockingIOError: pass\ntime.sleep(.5)";
    let filled = run(fill);
    let kernel = filled["floor_breakdown"]["kernel"].as_u64().unwrap();
    assert!((12 * MIB..40 * MIB).contains(&kernel), "{filled:#}");
    assert!(filled["tree_held_at_least_bytes"].as_u64().unwrap() > kernel, "{filled:#}");
    assert!(filled["floor_bytes"].as_u64().unwrap() > kernel && filled["doubts"] == json!([]), "{filled:#}");
    let empty = run(&fill.replace("range(100)", "range(8)").replace("65536", "1"));
    assert_eq!(empty["doubts"], json!([]), "{empty:#}");
}

#[test]
fn possible_memory_of_pipes_is_in_the_first_line() {
    if !can_hide_cgroups() {
        return;
    }
    let fill = "import fcntl, os, time\nfor _ in range(60):\n  end = os.pipe()[1]\n  fcntl.fcntl(end, 1031, 1 << 20)\n  \
                os.write(end, bytes(1 << 20))\ntime.sleep(.5)";
    let filled = run(fill)["doubts"].to_string();
    assert!(filled.contains("up to 60.0 MiB that pipes of it may hold are missing"), "{filled}");
    let pipeline = "yes 123456789 | head -c 9000000 | cat | cat | cat | tail -n 1 >&2; sleep .2";
    assert!(!run_shell(pipeline)["doubts"].to_string().contains("pipes"));
}

/// Each file is closed before a sample can find it open.
#[test]
fn files_in_memory_that_are_closed_at_once_are_reported() {
    if !can_hide_cgroups() {
        return;
    }
    let name = format!("/dev/shm/bursar-closed-{}", std::process::id());
    let script = format!(
        "import os, time\nfor n in range(20):\n  file = '{name}-' + str(n)\n  open(file, 'wb').write(bytes(1 << 20))\ntime.sleep(.5)\n\
         for n in range(20): os.remove('{name}-' + str(n))"
    );
    for _ in 0..4 {
        let json = run(&script);
        let doubt = json["doubts"].as_array().unwrap().iter().find(|doubt| doubt["kind"] == "files-in-memory");
        assert_eq!(doubt.map(|doubt| &doubt["bytes"]), Some(&json!(20 * MIB)), "{json:#}");
    }
}

/// Fills shared memory in pieces and takes each out of its page table: 120 MiB stay in memory, and its RSS never shows more than 4.
const UNMAPPED: &str = "import mmap, time\nshared = mmap.mmap(-1, 120 << 20)\nfor at in range(0, 120 << 20, 4 << 20):\n  \
                        shared[at:at + (4 << 20)] = bytes(4 << 20)\n  shared.madvise(mmap.MADV_DONTNEED, at, 4 << 20)\ntime.sleep(.5)";

#[test]
fn shared_memory_that_page_tables_do_not_show_is_in_the_first_line() {
    if !can_hide_cgroups() {
        return;
    }
    // Children fill a part each, and the parent has nothing of it in its page table.
    let by_children = "import mmap, os, time\nshared = mmap.mmap(-1, 120 << 20)\nfor at in range(0, 120 << 20, 10 << 20):\n  \
                       pid = os.fork()\n  if not pid:\n    shared[at:at + (10 << 20)] = bytes(10 << 20)\n    os._exit(0)\n  \
                       os.waitpid(pid, 0)\ntime.sleep(.5)";
    // As shm_open and shm_unlink leave it: no descriptor and no name.
    let name = format!("/dev/shm/bursar-unlinked-{}", std::process::id());
    let unlinked = UNMAPPED.replace("mmap.mmap(-1, 120 << 20)", "mmap.mmap(file, 120 << 20); os.closerange(3, 64)").replacen(
        "import mmap, time",
        &format!("import mmap, os, time\nfile = os.open('{name}', os.O_RDWR | os.O_CREAT)\nos.ftruncate(file, 120 << 20); os.unlink('{name}')"),
        1,
    );
    for script in [UNMAPPED, by_children, &unlinked] {
        let json = run(script);
        let doubt = json["doubts"].as_array().unwrap().iter().find(|doubt| doubt["kind"] == "not-counted");
        let bytes = doubt.and_then(|doubt| doubt["bytes"].as_u64()).unwrap_or(0);
        assert!((100 * MIB..=140 * MIB).contains(&bytes), "{json:#}");
        assert_eq!(doubt.unwrap()["missing_from_peak"], true, "{json:#}");
    }
    let untouched = run("import mmap, time\nshared = mmap.mmap(-1, 1 << 30)\ntime.sleep(.5)");
    let bytes = untouched["doubts"][0]["bytes"].as_u64().unwrap_or(0);
    assert!(bytes <= 24 * MIB, "it had too few page faults to have filled more: {untouched:#}");
    let shown = run("import mmap, time\nshared = mmap.mmap(-1, 60 << 20)\nshared[:] = bytes(60 << 20)\ntime.sleep(.5)");
    assert_eq!(shown["doubts"], json!([]), "{shown:#}");
}

#[test]
fn a_maximum_is_not_passed_beside_shared_memory_that_page_tables_do_not_show() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let check = |mut bursar: Command, max: &str| {
        bursar.args(["check", "--max", max, "--", "python3", "-c", UNMAPPED]);
        let output = without_cgroups(&bursar).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (status, line) = check(bursar_as_nobody(folder.path()), "100M");
    assert!(status == Some(2) && line.contains("of shared memory may be missing"), "{line}");
    let (status, line) = check(bursar_as_nobody(folder.path()), "300M");
    assert_eq!(status, Some(0), "{line}");
    let mut beside = bursar_as_nobody(folder.path());
    beside.args(["check", "--max", "300M", "--", "sh", "-c", &format!("python3 -c '{UNMAPPED}'; true")]);
    let output = without_cgroups(&beside).output().unwrap();
    let line = String::from_utf8_lossy(&output.stdout);
    // Where samples saw enough of it, the floor decides.
    let is_floor = line.starts_with("passed: floor 1");
    assert!(is_floor || line.starts_with("passed: its processes held at most 1"), "with what is missing: {line}");
    // Root knows how much of it there is.
    let (status, line) = check(bursar(), "100M");
    assert!(status == Some(1) && line.starts_with("failed: floor 1"), "{line}");
}

#[test]
fn a_maximum_is_failed_by_what_is_known_beside_missing_memory() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let fill = "import os, time\nheap = bytearray(60 << 20)\nfile = os.memfd_create('filled')\nfor _ in range(60): os.write(file, bytes(1 << 20))\n\
                time.sleep(.5)";
    let check = |max: &str| {
        let mut nobody = bursar_as_nobody(folder.path());
        nobody.args(["check", "--max", max, "--", "python3", "-c", fill]);
        let output = without_cgroups(&nobody).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (status, line) = check("100M");
    assert!(status == Some(1) && line.starts_with("failed: floor 1"), "{line}");
    let (status, line) = check("200M");
    assert_eq!(status, Some(0), "{line}");
}

#[test]
fn unsampled_shared_memory_is_in_the_floor() {
    if !can_hide_cgroups() {
        return;
    }
    let fill = "shared[::4096] = bytes(len(shared) // 4096)";
    for made in ["mmap.mmap(-1, 60 << 20)", "mmap.mmap(os.open('/dev/zero', 2), 60 << 20)"] {
        let json = unsampled(&format!("python3 -c \"import mmap, os; shared = {made}; {fill}\"; exit 0"));
        assert!((60..=80).contains(&floor(&json).0), "{made}: {json:#}");
        assert!(json["doubts"].to_string().contains("no sample saw"), "{made}: {json:#}");
    }
}

#[test]
fn check_counts_unsampled_processes() {
    if !can_hide_cgroups() {
        return;
    }
    let check = |max: &str, script: &str| {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let mut nobody = bursar_as_nobody(folder.path());
        nobody.args(["check", "--max", max, "--", "sh", "-c", script]);
        let output = without_cgroups(&nobody).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let short = "python3 -c 'bytearray(50 << 20)'; exit 0";
    let (status, line) = check("40M", short);
    assert!(status == Some(1) && line.starts_with("failed: floor 5"), "{line}");
    let (status, line) = check("80M", short);
    // On a loaded machine the bounds of the floor are apart, and what the largest process held decides.
    assert!(
        status == Some(0) && ["passed: floor 5", "passed: App-MaxRSS 5"].iter().any(|known| line.starts_with(known)),
        "{line}"
    );
    let two = "python3 -c 'bytearray(50 << 20)' & python3 -c 'bytearray(50 << 20)' & wait";
    let (status, line) = check("90M", two);
    let is_open = line.contains("together") && line.contains(", and the maximum is 90.0 MiB");
    assert!(status == Some(1) || (status == Some(2) && is_open), "{line}");
}

#[test]
fn processes_without_figures_are_reported_as_missing() {
    if !can_hide_cgroups() || !need("busybox, statically linked", std::path::Path::new("/bin/busybox").exists()) {
        return;
    }
    let json = unsampled("busybox true; busybox true; exit 0");
    let notes = json["notes"].to_string();
    assert!(notes.contains("page faults are of processes that left no report"), "{json:#}");
    let json = unsampled("python3 -c 'bytearray(30 << 20); import os; os.kill(os.getpid(), 9)'; exit 0");
    assert!(json["notes"].to_string().contains("killed"), "{json:#}");
}

#[test]
fn unsampled_orphans_are_known_by_wait4() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = folder.path().join("footprint");
    copy_program(Programs::build().footprint().as_ref(), &program);
    let mut nobody = bursar_as_nobody(folder.path());
    // Its parent, a subshell, ends at once.
    let script = format!("({} private 50M --hold 0 >&- &); sleep 3", program.display());
    nobody.args(["run", "-q", "--json", "-", "--interval", "60s", "--", "sh", "-c", &script]);
    let (status, json) = json_of(&mut without_cgroups(&nobody));
    assert_eq!(status, 0);
    assert!(json["sources"]["processes"].as_str().unwrap().contains("wait4 of the command and of orphans"), "{json:#}");
    for figure in ["floor_bytes", "tree_max_rss_bytes", "tree_held_at_least_bytes"] {
        let mib = json[figure].as_u64().unwrap() / MIB;
        assert!((50..=54).contains(&mib), "it is in {figure}: {json:#}");
    }
}

/// A user without root as PID 1, on a read-only root, without a home and without cgroups.
fn bare(folder: &std::path::Path, words: &[&str]) -> std::process::Output {
    const ENTER: &str = "umount -Rl /sys/fs/cgroup; for at in /tmp /var/tmp /dev/shm /run; do mount --bind $at $at && mount -o \
                         remount,bind,ro $at; done; mount --bind / /; mount -o remount,bind,ro /; exec env -i PATH=\"$PATH\" setpriv \
                         --reuid=65534 --regid=65534 --clear-groups --no-new-privs timeout -s TERM 10 \"$@\"";
    let bursar = folder.join("bursar");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", ENTER, "sh"]).arg(bursar).args(words);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn commands_work_or_give_the_reason_in_a_bare_container() {
    if !can_hide_cgroups() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    drop(bursar_as_nobody(folder.path()));
    let record = folder.path().join("record.bursar");
    let recorded =
        support::bursar().args(["run", "-q", "--record"]).arg(&record).args(["--", "true"]).status().unwrap();
    assert!(recorded.success());
    std::fs::set_permissions(&record, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let record = record.to_str().unwrap();
    for (words, status) in [
        (&["doctor"][..], 0),
        (&["run", "--", "true"], 0),
        (&["watch", "--", "sleep", "0.1"], 0),
        (&["faults", "--", "true"], 0),
        (&["provision", "--", "true"], 0),
        (&["advise", "run", "--", "true"], 0),
        (&["attribute", "--", "true"], 0),
        (&["report", record], 0),
        (&["report", "--format", "csv", record], 0),
        (&["report", "--format", "json", record], 0),
        (&["recommend", "--from", "/nonexistent"], 125),
        (&["budget", "--", "true"], 0),
        (&["serve"], 125),
    ] {
        let output = bare(folder.path(), words);
        let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {printed}");
        assert!(!printed.trim().is_empty() && !printed.contains("panicked"), "{words:?}: {printed}");
        if status == 125 {
            assert_eq!(printed.trim().lines().count(), 1, "one sentence: {words:?}: {printed}");
        }
        assert!(words[0] != "budget" || printed.contains("limits emulated"), "{printed}");
    }
}
