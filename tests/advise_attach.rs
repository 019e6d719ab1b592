//! `bursar advise attach` on programs whose memory accesses are known.

mod support;

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use linux::cgroup::Cgroup;
use serde_json::Value;
use support::{Programs, bursar, bursar_as_nobody, huge_pages_alone, is_root, need};

const REGION: u64 = 2 << 20;

/// A program that runs until it is dropped.
struct Target {
    child: Child,
    /// The start of its first region.
    address: u64,
}

impl Target {
    fn start(what: &str, mib: u32) -> Target {
        Target::of(Command::new(Programs::build().advised()).args([what, &mib.to_string()]))
    }

    fn of(command: &mut Command) -> Target {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            u64::from_str_radix(line.trim(), 16).expect("it has its memory, of huge pages if they were asked for");
        Target { child, address }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end; returns its status.
    fn end(mut self) -> i32 {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code().unwrap()
    }

    /// Its memory in huge pages, in bytes.
    fn huge(&self) -> u64 {
        self.memory("AnonHugePages:")
    }

    /// A line of its `smaps_rollup`, in bytes.
    fn memory(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid())).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    /// The number of the region that a decision applies to.
    fn region(&self, decision: &Value) -> u64 {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        let ranges = maps.lines().filter_map(|line| {
            let (begin, rest) = line.split_once('-')?;
            let end = rest.split(' ').next()?;
            Some((u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
        });
        let (begin, _) = { ranges }.find(|(begin, end)| (*begin..*end).contains(&self.address)).unwrap();
        (begin + decision["from"].as_u64().unwrap() - self.address) / REGION
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The option that names a target.
fn option(target: &str) -> &'static str {
    if target.starts_with('/') { "--cgroup" } else { "--pid" }
}

/// The statistics that `--stats` wrote, and standard error.
fn attach(target: &str, arguments: &[&str]) -> (Value, String) {
    let output =
        bursar().args(["advise", "attach", option(target), target, "--stats", "-"]).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    (serde_json::from_slice(&output.stdout).unwrap(), errors)
}

/// Attaches to a freshly started program for longer and longer, until `is_seen`: on a busy machine, an agent that is limited to its share
/// of the processor makes few scans.
fn attach_until(
    start: impl Fn() -> Target,
    seconds: &[u32],
    arguments: &[&str],
    is_seen: impl Fn(&Value) -> bool,
) -> (Target, Value, String) {
    let mut last = None;
    for seconds in seconds {
        let target = start();
        let duration = format!("{seconds}s");
        let all = [&["--interval", "500ms", "--duration", &duration], arguments].concat();
        let (stats, errors) = attach(&target.pid().to_string(), &all);
        let seen = is_seen(&stats);
        last = Some((target, stats, errors));
        if seen {
            break;
        }
    }
    last.unwrap()
}

/// An agent that has begun, and the rest of its standard error.
fn agent(target: &Target, arguments: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let pid = target.pid().to_string();
    let mut command = bursar();
    command.args(["advise", "attach", "--pid", &pid]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut agent = command.spawn().unwrap();
    let mut errors = BufReader::new(agent.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("advising"), "{line}");
    (agent, errors)
}

fn decided<'a>(stats: &'a Value, action: &'a str) -> impl Iterator<Item = &'a Value> {
    stats["explained"].as_array().unwrap().iter().filter(move |decision| decision["action"] == action)
}

/// Whether page tables of a process can be read here.
fn can_scan() -> bool {
    is_root() && need("page tables that BPF can read (Linux 6.1 on x86-64)", linux::pages::available().is_ok())
}

#[test]
fn hot_memory_becomes_huge_pages_and_cold_does_not() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    let skewed = || Target::start("skewed", 256);
    let (target, stats, errors) =
        attach_until(skewed, &[15, 60, 120], &[], |stats| decided(stats, "promote").count() >= 10);
    let promoted: Vec<u64> = decided(&stats, "promote").map(|decision| target.region(decision)).collect();
    assert!(promoted.iter().all(|region| region % 10 == 0), "{promoted:?}");
    assert!((10..=13).contains(&promoted.len()), "{promoted:?} of 13; {errors}");
    assert_eq!(stats["promoted"], promoted.len() as u64);
    assert_eq!(target.huge(), promoted.len() as u64 * REGION);
    let share = stats["huge_share"].as_f64().unwrap();
    assert!((0.05..0.15).contains(&share), "{share}");
    assert!(decided(&stats, "leave").count() > 50 && stats["decisions"].as_u64().unwrap() > 100);
    let decision = decided(&stats, "promote").next().unwrap();
    assert!(decision["benefit_ns"].as_f64() > decision["cost_ns"].as_f64());
    assert_eq!((decision["kind"].as_str(), decision["which"].as_str()), (Some("mmap"), Some("28")));
    assert!(errors.contains(&format!("{} huge pages made and 0 split", promoted.len())), "{errors}");
}

#[test]
fn a_dry_run_decides_the_same_without_changes() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    let skewed = || Target::start("skewed", 256);
    let (target, stats, errors) =
        attach_until(skewed, &[8, 60], &["--dry-run"], |stats| stats["promoted"].as_u64() > Some(0));
    assert!(stats["promoted"].as_u64().unwrap() > 0, "{errors}");
    assert_eq!((target.huge(), &stats["dry_run"]), (0, &Value::Bool(true)));
    assert!(errors.contains("would have been made"), "{errors}");
}

#[test]
fn cold_sparse_huge_pages_are_split_and_full_ones_are_not() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    let before = Cell::new(0);
    let still = || {
        let target = Target::start("still", 32);
        assert_eq!(target.huge(), 16 * REGION);
        before.set(target.memory("Anonymous:"));
        target
    };
    let (target, stats, errors) = attach_until(still, &[26, 60], &[], |stats| stats["demoted"] == 8);
    let mut split: Vec<u64> = decided(&stats, "demote").map(|decision| target.region(decision)).collect();
    split.sort_unstable();
    assert_eq!(split, [1, 3, 5, 7, 9, 11, 13, 15], "{errors}");
    assert_eq!((target.huge(), stats["demoted"].as_u64()), (8 * REGION, Some(8)));
    let given_back = before.get() - target.memory("Anonymous:");
    assert_eq!(given_back, 8 * (REGION - 4096), "memory of zeroes is given back");
    assert_eq!(target.end(), 0, "its memory has the same content");
}

#[test]
fn memory_that_the_program_freed_stays_free() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    const REFUSED: &str = "it would make the program's memory more than a tenth larger";
    let start = || Target::start("returns", 1024);
    let (target, stats, errors) =
        attach_until(start, &[15, 60, 120], &[], |stats| stats["refused"][REFUSED].as_u64().is_some());
    // 64 MiB of 1 GiB are left.
    let resident = target.memory("Rss:");
    assert!(resident <= (64 + 7 + 4) << 20, "{} MiB: {stats:#}", resident >> 20);
    assert!(stats["promoted"].as_u64().unwrap() <= 3, "{stats:#}");
    assert!(errors.contains(REFUSED), "it is hot, and worth huge pages but for its memory: {errors}");
}

#[test]
fn refused_promotions_are_counted_and_reported() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    let refuses = || Target::start("refuses", 256);
    let is_refused = |stats: &Value| stats["refused"].as_object().is_some_and(|refused| !refused.is_empty());
    let (target, stats, errors) = attach_until(refuses, &[8, 60], &[], is_refused);
    let refused = stats["refused"].as_object().unwrap();
    let (why, times) = refused.iter().next().unwrap_or_else(|| panic!("{errors}"));
    assert!(why.contains("does not want huge pages") && errors.contains(why), "{errors}");
    let tried = decided(&stats, "leave").filter(|decision| decision["why"].as_str().unwrap().contains(why));
    let mut tried: Vec<u64> = tried.map(|decision| target.region(decision)).collect();
    tried.sort_unstable();
    assert!(
        tried.iter().all(|region| region % 10 == 0) && tried.windows(2).all(|two| two[0] < two[1]),
        "each hot region once: {tried:?}"
    );
    assert_eq!(times.as_u64(), Some(tried.len() as u64));
    assert_eq!((stats["promoted"].as_u64(), target.huge()), (Some(0), 0));
}

#[test]
fn the_agent_ends_when_the_program_ends() {
    if !can_scan() {
        return;
    }
    let target = Target::start("skewed", 64);
    let (agent, _errors) = agent(&target, &["--stats", "-"]);
    assert_eq!(target.end(), 0);
    let output = agent.wait_with_output().unwrap();
    assert!(output.status.success());
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(stats["wall_seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_interrupt_ends_the_agent_and_not_the_program() {
    if !can_scan() {
        return;
    }
    let mut target = Target::start("skewed", 64);
    let (mut agent, mut stderr) = agent(&target, &[]);
    let pid = rustix::process::Pid::from_raw(agent.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut errors = String::new();
    stderr.read_to_string(&mut errors).unwrap();
    assert!(agent.wait().unwrap().success() && errors.contains("of a processor"), "{errors}");
    assert!(target.child.try_wait().unwrap().is_none());
}

#[test]
fn threads_children_and_executed_programs_are_advised() {
    let _alone = huge_pages_alone();
    if !can_scan() {
        return;
    }
    for what in ["threads", "forks", "executes"] {
        let start = || {
            let mut command = Command::new(Programs::build().advised());
            let command = command.args([what, "256"]).stdin(Stdio::piped()).stdout(Stdio::null());
            Target { child: command.spawn().unwrap(), address: 0 }
        };
        let (_, stats, errors) = attach_until(start, &[8, 60], &[], |stats| stats["promoted"].as_u64() > Some(0));
        assert!(stats["promoted"].as_u64().unwrap() > 0, "{what}: {errors}");
    }
}

/// A cgroup that is removed when dropped, after its children.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_cgroup_target_is_given_by_its_folder() {
    if !can_scan() {
        return;
    }
    let own = Cgroup::of(std::process::id() as i32).ok().flatten();
    let name = format!("bursar-test-advise-{}", std::process::id());
    let folder = own.map(|own| own.dir().join(name)).filter(|folder| std::fs::create_dir(folder).is_ok());
    if !need("a cgroup of one's own", folder.is_some()) {
        return;
    }
    let group = Group(folder.unwrap());
    let target = Target::start("skewed", 64);
    std::fs::write(group.0.join("cgroup.procs"), target.pid().to_string()).unwrap();
    let decisions = |duration| {
        let options = ["--duration", duration, "--interval", "500ms", "--dry-run"];
        attach(group.0.to_str().unwrap(), &options).0["decisions"].as_u64().unwrap()
    };
    assert!(decisions("5s") > 0 || decisions("60s") > 0);
}

#[test]
fn a_missing_target_is_reported_in_one_sentence() {
    for (target, what) in [("999999999", "there is no process 999999999"), ("/nowhere", "/nowhere")] {
        let output = bursar().args(["advise", "attach", option(target), target]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), errors.lines().count()), (Some(125), 1), "{errors}");
        assert!(errors.contains(what), "{errors}");
    }
}

#[test]
fn without_privilege_the_missing_right_is_named() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let own = std::process::id().to_string();
    let output = bursar_as_nobody(folder.path()).args(["advise", "attach", "--pid", &own]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.lines().count()), (Some(125), 1), "{errors}");
    assert!(errors.contains("needs CAP_SYS_NICE"), "{errors}");
}
