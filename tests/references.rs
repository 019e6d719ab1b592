//! References to files noted inside the processes: without root, and compared with the tracepoints on the same work.

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{bursar, bursar_as_nobody, is_root, json_of, need};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const SOURCE: &str = "references seen inside the processes";

/// A folder on disk that every user may write to.
fn folder() -> TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// A file of numbers, one per line, that every user may read.
fn numbers(folder: &Path, name: &str, mib: u64) -> String {
    let path = folder.join(name);
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    let mut state = 1u64;
    for _ in 0..mib * MIB / 16 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        writeln!(file, "{:015}", state >> 20).unwrap();
    }
    file.flush().unwrap();
    path.to_str().unwrap().into()
}

/// The JSON of `run` for a shell command as a user without root.
fn as_nobody(folder: &Path, script: &str) -> Value {
    let mut command = if is_root() { bursar_as_nobody(folder) } else { bursar() };
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    // With other locales, each program maps locale files.
    command.current_dir(folder).env("TMPDIR", folder).env("LC_ALL", "C");
    let (status, json) = json_of(command.args(["run", "-q", "--json", "-", "--", "sh", "-c", script]));
    assert_eq!(status, 0, "{json}");
    json
}

fn demand(run: &Value) -> &Value {
    let demand = &run["file_demand"];
    assert!(demand.is_object(), "{run}");
    demand
}

fn bytes(demand: &Value, name: &str) -> u64 {
    demand[name].as_u64().unwrap()
}

fn assert_near(found: u64, expected: u64, name: &str) {
    assert!(found.abs_diff(expected) <= expected / 50 + MIB, "{name}: {found}, not {expected}");
}

/// Near `expected`, plus the libraries of so many programs.
fn assert_near_with_programs(found: u64, expected: u64, programs: u64, name: &str) {
    let most = expected + expected / 50 + programs * 4 * MIB;
    assert!((expected..=most).contains(&found), "{name}: {found}, not {expected}, with {programs} programs");
}

/// Limits and refaults; limits are counted from the last one down.
fn curve(demand: &Value) -> Vec<(i64, u64)> {
    let points = demand["points"].as_array().unwrap();
    let point = |point: &Value| (point["limit_bytes"].as_i64().unwrap(), point["refault_bytes"].as_u64().unwrap());
    let points: Vec<_> = points.iter().map(point).collect();
    let last = points.last().map_or(0, |last| last.0);
    points.iter().map(|(limit, refaults)| (limit - last, *refaults)).collect()
}

/// Refaults at a limit.
fn at(curve: &[(i64, u64)], limit: i64) -> u64 {
    let after = curve.partition_point(|(at, _)| *at < limit);
    let Some(right) = curve.get(after) else { return 0 };
    let Some(left) = after.checked_sub(1).map(|i| curve[i]) else { return right.1 };
    let share = (limit - left.0) as f64 / (right.0 - left.0) as f64;
    (left.1 as f64 + share * (right.1 as f64 - left.1 as f64)) as u64
}

#[test]
fn a_file_read_three_times_has_its_cliff_at_its_size() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 100);
    let run = as_nobody(folder.path(), &format!("cat {file} {file} {file} >/dev/null"));
    let demand = demand(&run);
    assert_eq!(demand["rung"], SOURCE);
    assert_near(bytes(demand, "referenced_bytes"), 300 * MIB, "referenced");
    assert_near(bytes(demand, "distinct_bytes"), 100 * MIB, "distinct");
    assert_eq!(bytes(demand, "lost_events"), 0);
    assert_eq!(demand["not_visible"], serde_json::json!([]));
    let curve = curve(demand);
    assert_near(at(&curve, -(5 * MIB as i64)), 200 * MIB, "refaults below the cliff");
    assert_near((-curve[0].0) as u64, 100 * MIB, "the cliff above the rest");
}

#[test]
fn a_renamed_file_stays_in_the_demand() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 30);
    let rename = format!(r#"rename("{file}", "./file") or die; rename("file", "other") or die"#);
    let run = as_nobody(folder.path(), &format!("cat {file} >/dev/null; perl -e '{rename}'; cat other >/dev/null"));
    let demand = demand(&run);
    assert_near_with_programs(bytes(demand, "distinct_bytes"), 30 * MIB, 3, "distinct");
    assert!(at(&curve(demand), -(15 * MIB as i64)) >= 29 * MIB, "{demand}");
}

#[test]
fn heap_between_two_samples_adds_to_the_file() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 50);
    let slurp = format!("exec python3 -c 'for _ in range(3): open(\"{file}\", \"rb\").read()'");
    let run = as_nobody(folder.path(), &slurp);
    let demand = demand(&run);
    let last = demand["points"].as_array().unwrap().last().unwrap()["limit_bytes"].as_u64().unwrap() / MIB;
    // The file's pages, a copy of it in heap, and the program.
    assert!((100..=125).contains(&last), "{last} MiB: {demand}");
}

/// Writes and reads an unlinked file of 40 MiB, four times in one process.
const NAMELESS: &str = r#"perl -e 'for (1..4) {
    open(F, "+>", "temporary"); unlink("temporary");
    print F "x" x (1 << 20) for 1..40;
    seek(F, 0, 0); while (read(F, $text, 1 << 20)) {}
    close(F) }'"#;

/// Temporary files of 40 MiB, written, read and removed one after the other.
fn temporary_files() -> [String; 6] {
    let written_and_read = |and_gone: &str| {
        let write_and_read = "head -c 40M /dev/zero >temporary; cat temporary >/dev/null";
        format!("for i in 1 2 3 4; do : >empty; {write_and_read}; {and_gone}; done")
    };
    [
        written_and_read("rm temporary"),
        written_and_read(": >temporary"),
        written_and_read("truncate -s 0 temporary"),
        written_and_read("mv empty temporary"),
        NAMELESS.to_string(),
        // Only the tracepoints show that the shell keeps it open after its removal.
        written_and_read("exec 3<temporary; rm temporary; cat <&3 >/dev/null; exec 3<&-"),
    ]
}

#[test]
fn removed_files_leave_their_memory_to_later_ones() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 50);
    let between = temporary_files().map(|files| format!("cat {file} >/dev/null; {files}; cat {file} >/dev/null"));
    let by_root = |script: &String| {
        let mut command = bursar();
        command.current_dir(folder.path()).env("LC_ALL", "C");
        json_of(command.args(["run", "-q", "--json", "-", "--", "sh", "-c", script])).1
    };
    let mut runs: Vec<(&String, Value)> = Vec::new();
    for script in &between[..5] {
        runs.push((script, as_nobody(folder.path(), script)));
        fs::remove_file(folder.path().join("temporary")).ok();
        fs::remove_file(folder.path().join("empty")).ok();
    }
    if need("the tracepoints", is_root()) {
        runs.extend(between.iter().map(|script| (script, by_root(script))));
    }
    for (script, run) in runs {
        let demand = demand(&run);
        let last = demand["points"].as_array().unwrap().last().unwrap()["limit_bytes"].as_u64().unwrap() / MIB;
        // The file that stays and one temporary file, beside the programs.
        assert!((90..=105).contains(&last), "{script}: {last} MiB: {demand}");
        let again = at(&curve(demand), -(40 * MIB as i64)) / MIB;
        assert!((38..=60).contains(&again), "{script}: {again} MiB: {demand}");
    }
}

#[test]
fn processes_with_a_shared_offset_continue_each_others_reads() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 20);
    // The shell's descriptor, inherited by each program; then two descriptors of one process.
    let parts = "for i in 1 2 3 4 5; do dd bs=64k count=64 iflag=fullblock; done";
    let run = as_nobody(folder.path(), &format!("{{ {parts}; }} <{file} >/dev/null 2>&1"));
    let demand = demand(&run);
    assert_near_with_programs(bytes(demand, "distinct_bytes"), 20 * MIB, 1, "distinct");
    assert_near_with_programs(bytes(demand, "referenced_bytes"), 20 * MIB, 6, "referenced");
}

#[test]
fn appended_and_rewritten_data_counts_as_written_only() {
    let folder = folder();
    let script =
        "for i in 1 2 3; do head -c 10M /dev/zero >>log; dd if=/dev/zero of=saved bs=1M count=10 conv=notrunc; done";
    let run = as_nobody(folder.path(), &format!("{{ {script}; }} 2>/dev/null"));
    let demand = demand(&run);
    assert_near(bytes(demand, "written_only_bytes"), 40 * MIB, "written only");
    assert_near_with_programs(bytes(demand, "referenced_bytes"), 60 * MIB, 7, "referenced");
}

#[test]
fn reads_of_a_static_program_are_reported_as_not_visible() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 8);
    let run = as_nobody(folder.path(), &format!("cat {file} >/dev/null; busybox cat {file} {file} >/dev/null"));
    let demand = demand(&run);
    assert_near_with_programs(bytes(demand, "distinct_bytes"), 8 * MIB, 1, "distinct");
    let unseen = demand["not_visible"].to_string();
    assert!(unseen.contains("16.0 MiB of the 24.0 MiB that it read by calls"), "{unseen}");
}

#[test]
fn reads_by_the_loader_and_the_library_are_not_reported() {
    let folder = folder();
    let run = as_nobody(folder.path(), "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done");
    let unseen = demand(&run)["not_visible"].to_string();
    assert!(!unseen.contains("that it read by calls"), "{unseen}");
    assert_eq!(run["processes"], 501, "{run:#}");
    assert!(!run["notes"].to_string().contains("page faults"), "{run:#}");
}

#[test]
fn a_static_program_runs_and_its_references_are_missing() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 1);
    let mut command = if is_root() { bursar_as_nobody(folder.path()) } else { bursar() };
    let (status, run) = json_of(command.args(["run", "-q", "--json", "-", "--", "busybox", "wc", &file]));
    assert_eq!(status, 0);
    assert!(run["file_demand"].is_null(), "{run}");
    let notes = run["notes"].to_string();
    assert!(notes.contains("statically linked") && notes.contains("its references to files are not seen"), "{notes}");
}

/// The demand by the tracepoints and by notes inside, for the same work.
fn by_both(script: &str, folder: &Path) -> (Value, Value) {
    let run = |rung: &str| {
        let mut command = bursar();
        command.current_dir(folder).env("TMPDIR", folder).env("LC_ALL", "C").env("BURSAR_FORCE_RUNG", rung);
        let (status, json) = json_of(command.args(["run", "-q", "--json", "-", "--", "sh", "-c", script]));
        assert_eq!(status, 0, "{json}");
        json
    };
    let (traced, inside) = (demand(&run("")).clone(), demand(&run("references-inside")).clone());
    assert_eq!(inside["rung"], SOURCE);
    assert_eq!(bytes(&inside, "lost_events"), 0);
    (traced, inside)
}

fn compare(script: &str, folder: &Path) {
    if !is_root() {
        return;
    }
    let (traced, inside) = &by_both(script, folder);
    let distinct = bytes(traced, "distinct_bytes");
    let slack = distinct / 50 + 2 * MIB;
    assert!(bytes(inside, "distinct_bytes").abs_diff(distinct) <= slack, "{script}: {inside}\n{traced}");
    let (traced, inside) = (curve(traced), curve(inside));
    for step in 0..=50 {
        let limit = -(distinct as i64) * step / 50;
        let slack = slack as i64;
        let near = |one: &[(i64, u64)], other: &[(i64, u64)]| at(one, limit + slack) <= at(other, limit) + slack as u64;
        assert!(near(&traced, &inside) && near(&inside, &traced), "{script} at {limit}: {traced:?} {inside:?}");
    }
}

#[test]
fn the_curve_equals_that_of_the_tracepoints() {
    let folder = folder();
    let file = numbers(folder.path(), "file", 48);
    compare(&format!("cat {file} {file} {file} >/dev/null"), folder.path());
    // Create it first, so that both do the same work.
    let table = "create table t(a integer primary key, b text); \
                 with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) \
                 insert into t select i, hex(randomblob(40)) from n; create index x on t(b);";
    let base = folder.path().join("base.db");
    assert!(Command::new("sqlite3").arg(&base).arg(table).status().unwrap().success());
    let query = "select count(*) from t where b > '8'; select sum(length(b)) from t where a % 7 = 0; select max(a) from t where b like '%F'; \
                 update t set a = -a where a % 50 = 0; rollback;";
    compare(&format!("sqlite3 base.db \"begin; {query}\" >/dev/null"), folder.path());
}

/// Almost nothing else is referenced; some libraries are mapped before bursar's, some after.
#[test]
fn touched_pages_of_programs_and_libraries_are_referenced() {
    if !is_root() {
        return;
    }
    let script = "for i in 1 2; do python3 -c 'import json, sqlite3, ssl'; ls -l >/dev/null; done";
    let (traced, inside) = by_both(script, folder().path());
    // Not all page table entries that fork copies are accessed again.
    for (name, part) in [("distinct_bytes", 20), ("referenced_bytes", 4)] {
        let (traced, inside) = (bytes(&traced, name), bytes(&inside, name));
        assert!(inside.abs_diff(traced) <= traced / part + MIB, "{name}: {inside}, by the tracepoints {traced}");
    }
}

/// The library reports the mapped pages when a program ends.
#[test]
fn libraries_of_a_killed_program_are_reported_as_not_visible() {
    let run = as_nobody(folder().path(), "sleep 100 & sleep 0.3; kill -9 $!; wait");
    let unseen = demand(&run)["not_visible"].to_string();
    assert!(unseen.contains("programs and libraries of 1 process that was killed or still runs"), "{unseen}");
}

#[test]
fn io_uring_is_reported_as_not_visible() {
    let loads = "import ctypes; ctypes.CDLL('liburing.so.2')";
    if !support::need(
        "liburing2",
        Command::new("python3").args(["-c", loads]).status().is_ok_and(|status| status.success()),
    ) {
        return;
    }
    let run = as_nobody(folder().path(), &format!("python3 -c \"{loads}\""));
    let unseen = demand(&run)["not_visible"].to_string();
    assert!(unseen.contains("what is read by io_uring"), "{unseen}");
}

#[test]
fn the_memory_of_the_notes_is_not_charged_to_the_command() {
    // The reads fill the whole memory of the notes.
    let folder = folder();
    let file = numbers(folder.path(), "file", 1);
    let run = as_nobody(
        folder.path(),
        &format!(
            "exec /usr/bin/python3 -c \"import os,time\nf=os.open('{file}',0)\nfor i in range(70000): os.pread(f,1,i*8192%(1<<20))\ntime.sleep(1)\""
        ),
    );
    assert_eq!(run["floor_breakdown"]["shared"], 0, "{run:#}");
}

/// The call is refused as by a container's seccomp filter.
#[test]
fn root_without_bpf_gets_references_from_inside() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let file = numbers(folder.path(), "file", 8);
    let filter = "import ctypes,os,struct,sys\n\
                  code=b''.join(struct.pack('HBBI',*i) for i in [(0x20,0,0,0),(0x15,0,1,321),(6,0,0,0x50001),(6,0,0,0x7fff0000)])\n\
                  b=ctypes.create_string_buffer(code); p=struct.pack('HxxxxxxP',4,ctypes.addressof(b))\n\
                  l=ctypes.CDLL(None,use_errno=True)\n\
                  if l.prctl(38,1,0,0,0) or l.prctl(22,2,ctypes.c_char_p(p),0,0): sys.exit(99)\n\
                  os.execv(sys.argv[1],sys.argv[1:])";
    let plain = bursar();
    let mut command = Command::new("python3");
    command.args(["-c", filter]).arg(plain.get_program()).current_dir(folder.path()).env("TMPDIR", folder.path());
    let (status, run) = json_of(command.args(["run", "-q", "--json", "-", "--", "cat", &file]));
    assert_eq!(status, 0, "{run}");
    assert_eq!(demand(&run)["rung"], SOURCE);
    assert_near(bytes(demand(&run), "distinct_bytes"), 8 * MIB + MIB, "distinct");
}

/// 256 KiB of a mapping of 4 GiB are touched, between passes over a file of 32 MiB.
#[test]
fn no_limit_below_mapped_files_is_named_that_were_not_scanned() {
    let folder = folder();
    let path = numbers(folder.path(), "mapped", 16);
    let read = format!(
        "import mmap; f = open('{path}'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); [sum(m[::64]) for _ in range(200)]"
    );
    let script = format!("/usr/bin/python3 -c \"{read}\"");
    let by_nobody = as_nobody(folder.path(), &script);
    let by_root = is_root().then(|| json_of(bursar().args(["run", "-q", "--json", "-", "--", "sh", "-c", &script])).1);
    for run in [by_nobody].into_iter().chain(by_root) {
        let above_floor = bytes(demand(&run), "known_from_bytes") - run["floor_bytes"].as_u64().unwrap();
        assert!((16 * MIB..40 * MIB).contains(&above_floor), "{} MiB: {run}", above_floor / MIB);
    }
}

#[test]
fn a_mapping_counts_only_by_its_touched_pages() {
    let folder = folder();
    let script = "import mmap\nwith open('sparse', 'wb') as f: f.truncate(4 << 30)\n\
                  f = open('sparse', 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n\
                  for i in range(3):\n  sum(m[: 4096 * 64 : 4096])\n  with open('read', 'rb', 0) as g:\n    while g.read(1 << 16): pass";
    fs::write(folder.path().join("script.py"), script).unwrap();
    fs::write(folder.path().join("read"), vec![1; 32 << 20]).unwrap();
    let run = as_nobody(folder.path(), "python3 script.py");
    let found = demand(&run);
    assert!(bytes(found, "distinct_bytes") < 64 * MIB, "{found}");
    let last = found["points"].as_array().unwrap().last().unwrap()["limit_bytes"].as_u64().unwrap();
    assert!(last < 80 * MIB, "{found}");
    let hidden = found["not_visible"].to_string();
    assert!(hidden.contains("which pages it touched of 4.00 GiB of mapped files"), "{hidden}");
}

#[test]
fn calls_of_a_program_linked_with_musl_are_noted() {
    if !need("musl-gcc", Path::new("/usr/bin/musl-gcc").exists()) {
        return;
    }
    let folder = folder();
    let file = numbers(folder.path(), "file", 100);
    let source = "#include <fcntl.h>\n#include <unistd.h>\nstatic char data[1 << 16];\nint main(int count, char **words) { \
                  for (int round = 0; round < 3; round++) { int file = open(words[1], O_RDONLY); \
                  while (read(file, data, sizeof data) > 0) {} close(file); } return count != 2; }";
    fs::write(folder.path().join("read.c"), source).unwrap();
    let program = folder.path().join("read");
    let built = Command::new("musl-gcc").arg("-o").arg(&program).arg(folder.path().join("read.c")).status().unwrap();
    assert!(built.success());
    let run = as_nobody(folder.path(), &format!("{} {file}", program.display()));
    let demand = demand(&run);
    assert_near(bytes(demand, "referenced_bytes"), 300 * MIB, "referenced");
    assert_near(bytes(demand, "distinct_bytes"), 100 * MIB, "distinct");
    assert_eq!(demand["not_visible"], serde_json::json!([]));
}
