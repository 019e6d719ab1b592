//! Jobs over several nodes, with a real MPI. Network namespaces stand for hosts, which share files only in folders given to both.

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use support::{Programs, bursar, can_limit, is_root, json_of, need};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 64 * MIB;

/// Two hosts, `north` and `south`, each with its own network, host name and run directory. Dropping this removes the namespaces.
struct Hosts {
    folder: tempfile::TempDir,
    /// The names of the network namespaces.
    spaces: [String; 2],
}

const NAMES: [&str; 2] = ["north", "south"];
const ADDRESSES: [&str; 2] = ["10.213.7.1", "10.213.7.2"];

fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).output().is_ok_and(|output| output.status.success())
}

impl Hosts {
    /// `None` where they cannot be created.
    fn make(name: &str) -> Option<Hosts> {
        if !is_root() || !need("Open MPI", Command::new("mpirun.openmpi").arg("--version").output().is_ok()) {
            return None;
        }
        let spaces = NAMES.map(|host| format!("bursar-{}-{name}-{host}", std::process::id()));
        let hosts = Hosts { folder: tempfile::tempdir().unwrap(), spaces };
        let [north, south] = &hosts.spaces;
        let made = ip(&format!("netns add {north}"))
            && ip(&format!("netns add {south}"))
            && ip(&format!("link add eth0 netns {north} type veth peer name eth0 netns {south}"))
            && hosts.spaces.iter().zip(ADDRESSES).all(|(space, address)| {
                ip(&format!("-n {space} link set lo up"))
                    && ip(&format!("-n {space} addr add {address}/24 dev eth0"))
                    && ip(&format!("-n {space} link set eth0 up"))
            });
        if !need("network namespaces (ip netns)", made) {
            return None;
        }
        for name in NAMES.into_iter().chain(["run"]) {
            std::fs::create_dir(hosts.path(name)).unwrap();
        }
        // nsenter keeps the cgroups visible; `ip netns exec` would mount another /sys.
        let folder = hosts.folder.path().display();
        hosts.script(
            "enter",
            &format!(
                "space=$1 host=$2; shift 2\nexec nsenter --net=/run/netns/$space unshare --uts --mount sh -c '\n\
             hostname \"$0\" && mount --bind \"{folder}/$0\" {folder}/run && exec \"$@\"' \"$host\" \"$@\"\n"
            ),
        );
        // The agent that mpirun uses in place of ssh. As on another machine, its processes are in none of our cgroups and sessions.
        let agent = |name: &str, before: &str| {
            let roots = "/sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/unified";
            let leave =
                format!("for root in {roots}; do [ -e $root/cgroup.procs ] && echo 0 >$root/cgroup.procs; done 2>&-");
            let enter = format!("exec setsid -w {folder}/enter {south} south sh -c \"{before}$*\"");
            hosts.script(name, &format!("shift\n{leave}\n{enter}\n"));
        };
        agent("agent", "");
        // A host on which the path of this bursar is empty.
        let program = bursar().get_program().to_owned();
        let place = Path::new(&program).parent().unwrap().display();
        agent("agent-without-bursar", &format!("mount --bind {folder}/south {place}; "));
        // A host whose cgroup file system is mounted read-only.
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let cgroups = if v1.exists() { v1 } else { Path::new("/sys/fs/cgroup") }.display();
        let read_only = format!("mount --bind {cgroups} {cgroups} && mount -o remount,bind,ro {cgroups}; ");
        agent("agent-without-limits", &read_only);
        Some(hosts)
    }

    fn script(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), format!("#!/bin/sh\n{text}")).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path at which each host has its own run directory.
    fn run(&self) -> String {
        self.path("run").display().to_string()
    }

    /// A command on the first host.
    fn on_north(&self) -> Command {
        let mut command = Command::new(self.path("enter"));
        command.args([self.spaces[0].as_str(), NAMES[0]]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    /// `mpirun` over both hosts, with this many ranks on each.
    fn mpirun(&self, each: usize) -> Vec<String> {
        self.mpirun_by("agent", each)
    }

    /// The same with another agent in place of ssh.
    fn mpirun_by(&self, agent: &str, each: usize) -> Vec<String> {
        let hosts = ADDRESSES.map(|address| format!("{address}:{each}")).join(",");
        let agent = self.path(agent).display().to_string();
        // Both hosts are one machine: by default each would bind its first rank, which busy-waits, to the same processor.
        let places = ["--oversubscribe", "--bind-to", "none"];
        let words = ["mpirun.openmpi", "--mca", "plm_rsh_agent", &agent, "--mca", "btl", "tcp,self"];
        words.into_iter().chain(places).chain(["-x", "XDG_STATE_HOME", "-H", &hosts]).map(String::from).collect()
    }

    /// The files with this extension in the run directory of a host.
    fn found(&self, host: &str, end: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in [self.path(host), self.path(host).join("bursar")] {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            found.extend(entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == end)));
        }
        found.sort();
        found
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for space in &self.spaces {
            ip(&format!("netns del {space}"));
        }
    }
}

/// Two ranks; one sends to the other, and each holds `SIZE`.
fn job() -> [String; 3] {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nodes-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/attribute");
        let program = out.join("mpi.openmpi");
        let mut make = Command::new("make");
        make.arg("-sC").arg(source).arg(format!("OUT={}", out.display())).arg(&program);
        assert!(make.status().is_ok_and(|status| status.success()), "the tests' programs are built by make and cc");
        program
    });
    [program.display().to_string(), "receive".into(), SIZE.to_string()]
}

/// The same, and as much memory in another process for 1.5 s, so that both hosts hold it at the same time.
fn job_that_lasts() -> Vec<String> {
    let held = "import time; held = bytearray(64 << 20); time.sleep(1.5)";
    let both = format!("python3 -c '{held}' & \"$@\" && wait");
    ["sh", "-c", &both, "sh"].map(String::from).into_iter().chain(job()).collect()
}

fn success(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused(arguments: &[&Path], expected: &str) {
    let output = bursar().arg("report").args(arguments).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(125) && complaint.contains(expected), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn records_of_ranks_on_two_hosts_are_merged() {
    let Some(hosts) = Hosts::make("merge") else { return };
    let run = |job: &[String]| {
        let mut command = hosts.on_north();
        command.env("XDG_STATE_HOME", hosts.run()).args(hosts.mpirun(1)).args(["-n", "2"]);
        command.arg(bursar().get_program()).args(["run", "-q", "--interval", "50ms", "--"]).args(job);
        success(&command.output().unwrap());
    };
    run(&job_that_lasts());
    let (north, south) = (hosts.found("north", "bursar"), hosts.found("south", "bursar"));
    let ([north], [south]) = (&north[..], &south[..]) else { panic!("{north:?} {south:?}") };
    let (merged, page) = (hosts.path("job.bursar"), hosts.path("page.html"));
    let mut command = bursar();
    command.args(["report", "--json", "-", "--record"]).arg(&merged).arg("--html").arg(&page);
    let (status, json) = json_of(command.args([south, north]));
    assert_eq!((status, &json["exit_status"]), (0, &0.into()), "{json:#}");
    let parts = json["parts"].as_array().unwrap();
    let whose: Vec<_> = parts.iter().map(|part| (part["host"].as_str().unwrap(), part["rank"].as_u64())).collect();
    assert_eq!(whose, [("north", Some(0)), ("south", Some(1))]);
    let of_parts: u64 = parts.iter().map(|part| bytes(&part["tree_max_rss_bytes"])).sum();
    let together = bytes(&json["tree_max_rss_bytes"]);
    assert!(together > 2 * SIZE && together <= of_parts + MIB, "{together} of {of_parts}");
    assert!(bytes(&json["floor_bytes"]) > 2 * SIZE, "{json:#}");

    // The time lines of each part have its host, and the report distinguishes them.
    let database = rusqlite::Connection::open(&merged).unwrap();
    let sql = "SELECT DISTINCT timeline.host, json_extract(origin, '$.rank') FROM timeline JOIN run USING (run) WHERE role = 'part'";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let lines: BTreeSet<(String, u32)> = rows.map(Result::unwrap).collect();
    assert_eq!(lines, [("north".to_string(), 0), ("south".to_string(), 1)].into());
    let report = bursar().arg("report").arg(&merged).output().unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("north ") || line.starts_with("south ")).count();
    assert!(rows == 2 && text.contains("ranks and nodes"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("south"));

    let (_, again) = json_of(bursar().args(["report", "--json", "-"]).arg(&merged));
    assert_eq!(again, json, "the figures are in the record");
    let csv = bursar().args(["report", "--format", "csv"]).args([north, south]).output().unwrap();
    assert!(String::from_utf8_lossy(&csv.stdout).lines().any(|line| line.starts_with("2,")), "a run for each part");

    let kept = hosts.path("alone.bursar");
    let alone = bursar().args(["report", "--record"]).arg(&kept).arg(north).output().unwrap();
    let expected = String::from_utf8(alone.stdout).unwrap();
    assert!(alone.status.success() && expected.contains("1 of 2 ranks") && kept.exists(), "{expected}");
    refused(&[north, north], "both of rank 0");
    refused(&[north, &merged], "holds 3 runs");
    run(&job());
    let again = hosts.found("south", "bursar").into_iter().find(|path| path != south).unwrap();
    refused(&[north, &again], "is of job pmix-");
    let lone = hosts.path("lone.bursar");
    let mut command = bursar();
    command.env_remove("SLURM_JOB_ID").args(["run", "-q", "--record"]).arg(&lone).args(["--", "true"]);
    success(&command.output().unwrap());
    refused(&[north, &lone], "bursar diff A B");
}

#[test]
fn logs_of_ranks_on_two_hosts_are_merged() {
    let Some(hosts) = Hosts::make("logs") else { return };
    let record = hosts.path("run").join("job.bursar");
    let check = |json: &Value| {
        let ranks = json["per_rank"].as_array().unwrap();
        let whose: Vec<_> = ranks.iter().map(|rank| (rank["host"].as_str().unwrap(), rank["rank"].as_u64())).collect();
        assert_eq!(whose, [("north", Some(0)), ("south", Some(1))], "{json:#}");
        for rank in ranks {
            let heap = bytes(&rank["components"]["application"]["heap"]);
            assert!((SIZE - MIB..SIZE + 2 * MIB).contains(&heap), "{json:#}");
        }
    };
    // Around mpirun, the library itself collects the logs, though the hosts' run directories differ.
    let mut command = hosts.on_north();
    command.arg(bursar().get_program()).args(["attribute", "-q", "--json", "-", "--interval", "20ms"]);
    command.arg("--record").arg(&record).arg("--").args(hosts.mpirun(1)).args(["-n", "2"]).args(job());
    let output = command.env("XDG_STATE_HOME", hosts.run()).output().unwrap();
    success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    check(&serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap());

    // Under mpirun, each host has a folder.
    let mut command = hosts.on_north();
    command.env("XDG_STATE_HOME", hosts.run()).args(hosts.mpirun(1)).args(["-n", "2"]);
    command.arg(bursar().get_program()).args(["attribute", "-q", "--interval", "20ms", "--record"]);
    let output = command.arg(hosts.path("run").join("other.bursar")).arg("--").args(job()).output().unwrap();
    success(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("to report them: bursar report "), "{output:?}");
    let folders = [hosts.found("north", "run"), hosts.found("south", "run")].concat();
    assert_eq!(folders.len(), 2, "{folders:?}");
    let (status, json) = json_of(bursar().args(["report", "--json", "-"]).args(&folders));
    assert_eq!((status, &json["ranks"]), (0, &2.into()), "{json:#}");
    check(&json);

    // As MPI copies it to the first host.
    let elsewhere = hosts.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for log in std::fs::read_dir(&folders[1]).unwrap() {
        let log = log.unwrap();
        let text = std::fs::read(log.path()).unwrap();
        std::fs::write(elsewhere.join(log.file_name()), text).unwrap();
    }
    let (_, twice) = json_of(bursar().args(["report", "--json", "-"]).args([&folders[1], &elsewhere]));
    assert!(bytes(&twice["total_peak_bytes"]) < SIZE + SIZE / 2, "a log that is there twice counts once: {twice:#}");
}

/// Ranks of 32 and 96 MiB with three processes each; the largest process has 40 MiB.
fn unequal_job() -> Vec<String> {
    let beside = "hold() { exec $0 private $((8 + 32 * OMPI_COMM_WORLD_RANK))M --hold 20000; }
                  hold & hold & \"$@\"; status=$?
                  kill $(jobs -p); wait; exit $status";
    let [program, case, _] = job();
    let programs = Programs::build();
    let footprint = programs.footprint();
    ["bash", "-c", beside, footprint]
        .map(String::from)
        .into_iter()
        .chain([program, case, (16 * MIB).to_string()])
        .collect()
}

/// `bursar budget` on the first host, with as few trials as possible.
fn budget(hosts: &Hosts) -> Command {
    let mut command = hosts.on_north();
    command.env("XDG_STATE_HOME", hosts.run()).arg(bursar().get_program());
    command.args(["budget", "-q", "--as-found", "--runs", "1", "--slowdown", "300%"]);
    command
}

/// The number of cgroups of runs that a process started.
fn cgroups_of(pid: u32) -> usize {
    let named = format!("bursar-{pid}-");
    let output = Command::new("find").args(["/sys/fs/cgroup", "-type", "d", "-name"]).arg(format!("{named}*")).output();
    String::from_utf8(output.unwrap().stdout).unwrap().lines().count()
}

/// The PIDs of processes with this word among their first two arguments.
fn running(word: &str, beneath: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    pids.filter(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text.split('\0').take(2).any(|first| first == word) && text.contains(beneath)
    })
    .collect()
}

fn wait_until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..400 {
        if is() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{what}");
}

#[test]
fn a_budget_over_two_hosts_fits_the_larger_one() {
    if !can_limit() {
        return;
    }
    let Some(hosts) = Hosts::make("budget") else { return };
    let (record, page) = (hosts.path("job.bursar"), hosts.path("page.html"));
    let mut command = budget(&hosts);
    command.args(["--json", "-", "--record"]).arg(&record).arg("--html").arg(&page).arg("--");
    let (status, json) = json_of(command.args(hosts.mpirun(1)).args(["-n", "2"]).args(unequal_job()));
    assert_eq!(status, 0, "{json:#}");

    // The memory of the second rank; on top of it come Python, MPI and its daemon.
    let held = 96 * MIB;
    let budget = bytes(&json["budget_bytes"]);
    assert!((held..held + 48 * MIB).contains(&budget), "{json:#}");
    let nodes = json["nodes"].as_array().unwrap();
    let [north, south] = &nodes[..] else { panic!("{json:#}") };
    assert_eq!((&north["host"], &south["host"]), (&"north".into(), &"south".into()));
    let floors = [north, south].map(|node| bytes(&node["floor_bytes"]));
    assert!((held..held + 40 * MIB).contains(&floors[1]) && floors[0] + 24 * MIB < floors[1], "{nodes:#?}");
    assert_eq!(bytes(&json["floor_bytes"]), floors[1]);
    assert!(nodes.iter().all(|node| node["reference_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0)));

    // No node exceeded the limit; where it was too small, the node that was killed has a larger floor.
    let trials = json["trials"].as_array().unwrap();
    for trial in trials.iter().filter(|trial| !trial["limit_bytes"].is_null()) {
        for node in trial["nodes"].as_array().unwrap() {
            assert!(bytes(&node["peak_charge_bytes"]) <= bytes(&trial["limit_bytes"]) + MIB, "{trial:#}");
        }
    }
    let killed: Vec<_> = trials.iter().filter(|trial| trial["outcome"] == "oom").collect();
    assert!(!killed.is_empty(), "the memory of the largest process alone is too little: {json:#}");
    for trial in killed {
        for node in trial["nodes"].as_array().unwrap().iter().filter(|node| bytes(&node["oom_kills"]) > 0) {
            let floor = floors[usize::from(node["host"] == "south")];
            assert!(floor > bytes(&trial["limit_bytes"]), "{trial:#}");
        }
    }

    // All of it is in the record, and in the reports made from the record.
    let database = rusqlite::Connection::open(&record).unwrap();
    let sql = "SELECT DISTINCT json_extract(origin, '$.host') FROM run JOIN figure USING (run)
               WHERE role = 'part' AND name = 'peak_charge_bytes' AND value > 0 ORDER BY 1";
    let mut statement = database.prepare(sql).unwrap();
    let parts: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(parts, NAMES);
    let report = bursar().arg("report").arg(&record).output().unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("on each of 2 nodes") && text.contains("OOM kill on "), "{text}");
    assert!(text.lines().any(|line| line.starts_with("south ")), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("What each node needs"));
}

#[test]
fn an_unusable_host_is_reported_before_anything_runs() {
    if !can_limit() {
        return;
    }
    let Some(hosts) = Hosts::make("without") else { return };
    let ran = hosts.path("ran");
    for (agent, why) in
        [("agent-without-bursar", "bursar on south"), ("agent-without-limits", "south: no limit can be set")]
    {
        let mut command = budget(&hosts);
        command.arg("--").args(hosts.mpirun_by(agent, 1)).args(["-n", "2", "touch"]).arg(&ran);
        let output = command.output().unwrap();
        let expected = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), expected.lines().count()), (Some(125), 1), "{expected}");
        assert!(expected.contains(why) && !ran.exists(), "{expected}");
    }
}

#[test]
fn a_killed_bursar_ends_the_budget_on_both_hosts() {
    if !can_limit() {
        return;
    }
    let Some(hosts) = Hosts::make("killed") else { return };
    let long = format!("60.{}", std::process::id());
    let agent = hosts.path("agent").display().to_string();
    let node = || running("node", &agent).into_iter().next();
    let at_work = || running("sleep", &long).len();
    let begin = || {
        let mut command = budget(&hosts);
        command.arg("--").args(hosts.mpirun(1)).args(["-n", "2", "sleep", &long]).stderr(std::process::Stdio::piped());
        let running_one = command.spawn().unwrap();
        wait_until("the other host takes part", || node().is_some_and(|pid| cgroups_of(pid) > 0 && at_work() == 2));
        running_one
    };

    let mut search = begin();
    let there = node().unwrap();
    search.kill().unwrap();
    search.wait().unwrap();
    wait_until("the daemon ends its processes", || node().is_none() && cgroups_of(there) == 0);

    let mut search = begin();
    let there = node().unwrap();
    let pid = rustix::process::Pid::from_raw(there as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let mut expected = String::new();
    std::io::Read::read_to_string(&mut search.stderr.take().unwrap(), &mut expected).unwrap();
    assert_eq!(search.wait().unwrap().code(), Some(125), "{expected}");
    assert!(expected.contains("south is lost"), "{expected}");
    bursar().args(["doctor", "--repair"]).output().unwrap();
    wait_until("the next bursar removes what the killed one left", || cgroups_of(there) == 0 && at_work() == 0);
}
