//! `bursar pool` with small pools of real huge pages, and clients that behave or misbehave.

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Programs, bursar, can_limit, huge_pages_alone, is_root, need};

const SEGMENT: u64 = 64 << 20;
const ALL: u64 = u64::MAX / 2;
const NOBODY: u32 = 65534;

/// A folder for pools, and the machine's number of huge pages before the test.
struct Bench {
    base: tempfile::TempDir,
    pages_before: u64,
    _alone: std::fs::File,
}

/// A process that holds a lease of a pool until its input ends.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    answer: Lease,
}

/// The broker's answer.
#[derive(Debug, PartialEq)]
struct Lease {
    status: u32,
    bytes: u64,
    zero: bool,
}

fn granted(segments: u64) -> Lease {
    Lease { status: 0, bytes: segments * SEGMENT, zero: true }
}

fn denied(status: u32) -> Lease {
    Lease { status, bytes: 0, zero: true }
}

/// Huge pages of the machine, including surplus pages, which vanish when they are freed.
fn pages() -> u64 {
    meminfo("HugePages_Total:")
}

fn meminfo(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

/// Waits for an event that takes a second or two, and longer on a busy machine.
fn soon(what: &str, happens: impl Fn() -> bool) {
    assert!(comes(happens), "{what}");
}

/// Whether the event happens before the deadline.
fn comes(happens: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(240);
    while !happens() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

impl Bench {
    /// `None` without the right to reserve huge pages.
    fn new() -> Option<Bench> {
        if !is_root() || !need("hugetlb", std::path::Path::new("/sys/kernel/mm/hugepages").exists()) {
            return None;
        }
        let alone = huge_pages_alone();
        let base = tempfile::tempdir().unwrap();
        std::fs::set_permissions(base.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Some(Bench { base, pages_before: pages(), _alone: alone })
    }

    /// With a pool of two segments.
    fn with_pool(options: &[&str]) -> Option<Bench> {
        let bench = Bench::new()?;
        let made = bench.pool(&[&["create", "128M"], options].concat());
        assert!(made.contains("128 MiB in pages of 2.00 MiB") && made.contains("populated in"), "{made}");
        Some(bench)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        bursar().arg("pool").args(arguments).env("BURSAR_POOLS", self.base.path()).output().unwrap()
    }

    /// Runs `bursar pool`; returns its standard output.
    fn pool(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `bursar pool`; returns the single sentence of its refusal.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {stderr}");
        stderr
    }

    fn status(&self) -> Value {
        let pools: Value = serde_json::from_str(&self.pool(&["status", "--json", "-"])).unwrap();
        pools["pools"][0].clone()
    }

    fn bytes(&self, name: &str) -> u64 {
        self.status()[name].as_u64().unwrap()
    }

    fn broker(&self) -> i32 {
        self.bytes("broker_pid") as i32
    }

    fn socket(&self) -> PathBuf {
        self.base.path().join("default/socket")
    }

    /// A lease of so many bytes, taken as `uid`.
    fn client_as(&self, uid: u32, bytes: u64, least: u64, also: &str) -> Client {
        let program = self.base.path().join("lease");
        if !program.exists() {
            // A place where every user may execute it.
            support::copy_program(Programs::build().lease().as_ref(), &program);
        }
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={uid}"), format!("--regid={uid}"), "--clear-groups".into()]).arg(program);
        command.arg(self.socket()).args([bytes.to_string(), least.to_string(), "-1".into()]);
        Client::start(command.args(Some(also).filter(|also| !also.is_empty())))
    }

    fn client(&self, bytes: u64) -> Client {
        self.client_as(0, bytes, 1, "")
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = self.broker();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
        soon("the broker ends", || self.status()["alive"] == false);
    }

    /// Starts a broker; it ends with the test at the latest.
    fn serve(&self) -> Child {
        let mut command = bursar();
        command.args(["pool", "serve", "default"]).env("BURSAR_POOLS", self.base.path());
        let broker = command.stdout(Stdio::null()).spawn().unwrap();
        soon("the broker answers", || self.status()["alive"] == true);
        broker
    }

    /// Asserts that nothing is left, and that the machine has as many huge pages as before.
    fn all_given_back(&self) {
        soon("huge pages as they were", || pages() == self.pages_before);
        assert!(!self.base.path().join("default").exists());
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        assert!(!mounts.contains(self.base.path().to_str().unwrap()), "{mounts}");
    }
}

impl Drop for Bench {
    /// Waits, because the next test counts huge pages, too. Must not panic: this may run during a panic.
    fn drop(&mut self) {
        let _ = bursar().args(["pool", "destroy", "--force"]).env("BURSAR_POOLS", self.base.path()).output();
        if !std::thread::panicking() {
            comes(|| pages() <= self.pages_before);
        }
    }
}

impl Client {
    fn start(command: &mut Command) -> Client {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let line = next(&mut output);
        let words: Vec<&str> = line.split_whitespace().collect();
        let [status, _, bytes, _, zero] = words[..] else { panic!("{line:?}") };
        let answer = Lease { status: status.parse().unwrap(), bytes: bytes.parse().unwrap(), zero: zero == "zero" };
        Client { process, input, output, answer }
    }

    /// Its next line.
    fn says(&mut self) -> String {
        next(&mut self.output)
    }

    /// Ends its input; returns its last line.
    fn end(mut self) -> String {
        drop(self.input.take());
        let last = self.says();
        self.process.wait().unwrap();
        last
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

fn next(output: &mut impl BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim().to_string()
}

/// A cgroup with the hugetlb controller, beneath the root of version 2.
struct Limited {
    root: PathBuf,
    own: PathBuf,
    has_enabled: bool,
}

impl Limited {
    /// `None` without the controller.
    fn new() -> Option<Limited> {
        let roots = [Path::new("/sys/fs/cgroup/unified"), Path::new("/sys/fs/cgroup")];
        let has = |root: &Path, file: &str| {
            std::fs::read_to_string(root.join(file)).is_ok_and(|all| all.split_whitespace().any(|one| one == "hugetlb"))
        };
        let root = roots.into_iter().find(|root| has(root, "cgroup.controllers"));
        if !need("the hugetlb controller", root.is_some()) {
            return None;
        }
        let root = root?.to_path_buf();
        let has_enabled = !has(&root, "cgroup.subtree_control");
        if has_enabled {
            std::fs::write(root.join("cgroup.subtree_control"), "+hugetlb").unwrap();
        }
        let own = root.join(format!("bursar-test-{}", std::process::id()));
        std::fs::create_dir(&own).unwrap();
        Some(Limited { root, own, has_enabled })
    }

    fn set(&self, file: &str, value: &str) {
        std::fs::write(self.own.join(file), value).unwrap();
    }

    /// Runs bursar in the cgroup.
    fn run(&self, bench: &Bench, arguments: &[&str]) -> Output {
        let script = r#"echo $$ >"$0/cgroup.procs" && exec "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&self.own).arg(assert_cmd::cargo::cargo_bin("bursar")).args(arguments);
        command.env("BURSAR_POOLS", bench.base.path()).output().unwrap()
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // A failed test may have left a broker in it. A second panic would abort all tests.
        if std::thread::panicking() {
            let _ = std::fs::write(self.own.join("cgroup.kill"), "1");
        }
        let is_removed = comes(|| std::fs::remove_dir(&self.own).is_ok());
        if self.has_enabled {
            let _ = std::fs::write(self.root.join("cgroup.subtree_control"), "-hugetlb");
        }
        assert!(is_removed || std::thread::panicking(), "the cgroup is not empty");
    }
}

#[test]
fn a_hugetlb_limit_is_named_before_any_reservation() {
    let Some(bench) = Bench::new() else { return };
    let Some(limited) = Limited::new() else { return };
    let stderr = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for file in ["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"] {
        limited.set(file, "64M");
        let output = limited.run(&bench, &["pool", "create", "128M"]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert!(text.contains("allows 64.0 MiB more in pages of 2.00 MiB, and 128 MiB are needed"), "{text}");
        assert!(text.contains(&format!("raise {}", limited.own.join(file).display())), "{text}");
        assert_eq!(pages(), bench.pages_before);
        limited.set(file, "max");
    }
    // A pool within the limit is created; growth beyond it is refused by the limit of the broker's cgroup, whichever process asks.
    limited.set("hugetlb.2MB.max", "128M");
    let output = limited.run(&bench, &["pool", "create", "64M"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let refused = bench.refused(&["grow", "128M"]);
    assert!(refused.contains("allows 64.0 MiB more"), "{refused}");
    bench.pool(&["destroy"]);
    bench.all_given_back();
}

#[test]
fn a_pool_serves_a_cgroup_that_may_have_no_huge_pages() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let Some(limited) = Limited::new() else { return };
    for file in ["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"] {
        limited.set(file, "0");
        let program = ["provision", "--", "python3", "-c", "print(sum(bytearray(b'x') * (64 << 20)) >> 20)"];
        let output = limited.run(&bench, &program);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "7680\n");
        assert!(stderr.contains("from pool default"), "{stderr}");
    }
    drop(limited);
    bench.pool(&["destroy"]);
    bench.all_given_back();
}

/// Ctrl-C arrives at any moment between the start of the broker and the end of the reservation.
#[test]
fn an_interrupted_creation_of_a_pool_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let size = format!("{}M", (meminfo("MemAvailable:") / 1024 / 2).min(6144));
    for wait in [0, 20, 60, 150, 400] {
        let mut create = bursar();
        create.args(["pool", "create", &size, "--name", "half"]).env("BURSAR_POOLS", bench.base.path());
        let mut create = create.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        soon("it begins", || bench.base.path().join("half").exists());
        std::thread::sleep(Duration::from_millis(wait));
        rustix::process::kill_process(rustix::process::Pid::from_child(&create), rustix::process::Signal::INT).unwrap();
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut create.stderr.take().unwrap(), &mut stderr).unwrap();
        assert_eq!(create.wait().unwrap().signal(), Some(2), "{stderr}");
        assert!(stderr.contains("interrupted") && stderr.lines().count() == 1, "{stderr}");
        assert!(!bench.base.path().join("half").exists(), "after {wait} ms");
        assert_eq!(pages(), bench.pages_before, "after {wait} ms");
    }
}

#[test]
fn memory_is_leased_in_whole_segments_and_cleared() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    assert_eq!(pages(), bench.pages_before + 64);
    let one = bench.client(1);
    let other = bench.client(ALL);
    assert_eq!((&one.answer, &other.answer), (&granted(1), &granted(1)));
    assert_eq!(bench.client(1).answer, denied(1), "exhausted");
    let status = bench.status();
    assert_eq!((&status["free_bytes"], &status["leased_bytes"]), (&0.into(), &(2 * SEGMENT).into()));
    let lease = &status["leases"][0];
    assert_eq!((&lease["pid"], &lease["command"]), (&one.process.id().into(), &"lease".into()));
    assert_eq!((&lease["uid"], &lease["lingering"]), (&0.into(), &false.into()));
    assert!(bench.pool(&["status"]).contains(&format!("process {} (lease) of user 0", one.process.id())));
    one.end();
    other.end();
    assert_eq!(bench.client(2 * SEGMENT).answer, granted(2), "the data of the others was cleared");
    assert_eq!(bench.client_as(0, 3 * SEGMENT, 3 * SEGMENT, "").answer, denied(1), "less would be of no use");
    bench.pool(&["destroy"]);
    bench.all_given_back();
}

#[test]
fn memory_mapped_by_a_child_is_not_free_after_its_parent() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let mut parent = bench.client_as(0, ALL, 1, "child");
    let child = parent.says();
    parent.process.wait().unwrap();
    soon("the lease lingers", || bench.status()["leases"][0]["lingering"] == true);
    assert_eq!(bench.client(1).answer, denied(1));
    assert!(bench.refused(&["destroy"]).contains(&format!("in use by {child} (lease)")));
    drop(parent);
    soon("free again", || bench.bytes("free_bytes") == 2 * SEGMENT);
    assert_eq!(bench.client(ALL).answer, granted(2));
}

#[test]
fn a_pinned_page_never_shows_data_of_the_next_program() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let spy = bench.client_as(0, 1, 1, "pipe");
    soon("no process maps it any more", || bench.bytes("leased_bytes") == 0);
    assert_eq!(bench.client(ALL).answer, granted(1), "the pinned page's segment is not lent");
    assert_eq!(spy.end(), "own");
    soon("free again", || bench.bytes("free_bytes") == 2 * SEGMENT);
    assert_eq!(bench.client(ALL).answer, granted(2));
}

#[test]
fn a_program_survives_its_broker_and_the_next_one_knows_it() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let client = bench.client(1);
    bench.client(1).end();
    bench.signal(rustix::process::Signal::KILL);
    assert!(bench.socket().exists() && bench.status()["free_bytes"].is_null());
    assert!(bench.refused(&["grow", "64M"]).contains("start it with `bursar pool serve default`"));
    let mut broker = bench.serve();
    assert!(bench.refused(&["serve"]).contains("another broker serves"));
    assert_eq!(bench.status()["leases"][0]["pid"], client.process.id());
    assert_eq!(bench.client(ALL).answer, granted(1));
    bench.signal(rustix::process::Signal::TERM);
    assert!(broker.wait().unwrap().success() && !bench.socket().exists());
    assert!(bench.refused(&["destroy"]).contains(&format!("in use by {} (lease)", client.process.id())));
    let mut broker = bench.serve();
    client.end();
    assert_eq!(bench.client(ALL).answer, granted(2));
    bench.pool(&["destroy"]);
    broker.wait().unwrap();
    bench.all_given_back();
}

#[test]
fn doctor_repair_removes_a_pool_after_its_broker_was_killed() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let stderr = |words: &[&str]| {
        let output = bursar().args(words).env("BURSAR_POOLS", bench.base.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let client = bench.client(1);
    bench.signal(rustix::process::Signal::KILL);
    let provisioned = stderr(&["provision", "--", "true"]);
    assert!(provisioned.contains("pool default has no broker"), "{provisioned}");
    assert!(stderr(&["doctor"]).contains("bursar pool serve default"));
    let status = stderr(&["pool", "status"]);
    assert!(status.contains("  node 0     128 MiB; only the broker knows what of it is free\n"), "{status}");
    let in_use = stderr(&["doctor", "--repair"]);
    assert!(in_use.contains("in use by ") && in_use.contains("`bursar pool serve default`"), "{in_use}");
    client.end();
    let repaired = stderr(&["doctor", "--repair"]);
    assert!(
        repaired.contains("pool default: its broker was killed; it is removed, and its 128 MiB given back"),
        "{repaired}"
    );
    bench.all_given_back();
}

#[test]
fn doctor_repair_keeps_a_pool_whose_broker_was_stopped() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    bench.signal(rustix::process::Signal::TERM);
    let repaired = bursar().args(["doctor", "--repair"]).env("BURSAR_POOLS", bench.base.path()).output().unwrap();
    assert!(repaired.status.success() && bench.bytes("bytes") == 2 * SEGMENT, "{repaired:?}");
}

#[test]
fn a_pool_removed_by_force_leaves_leases_to_their_processes() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let client = bench.client(1);
    let printed = bench.pool(&["destroy", "--force"]);
    assert!(printed.contains(&format!("process {} (lease)", client.process.id())), "{printed}");
    assert_eq!(pages(), bench.pages_before + 32);
    assert!(bench.pool(&["status"]).contains("no pools"));
    // Its pages are surplus: the next pool does not take them.
    bench.pool(&["create", "64M"]);
    assert_eq!(bench.client(ALL).answer, granted(1));
    drop(client);
    bench.pool(&["destroy"]);
    bench.all_given_back();
}

#[test]
fn misbehaving_clients_disturb_no_others() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let misbehave = |how: &str| {
        let mut command = Command::new(Programs::build().lease());
        command.arg(bench.socket()).arg(how).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut silent: Vec<Child> = (0..300).map(|_| misbehave("silent")).collect();
    for how in ["rubbish", "long"] {
        assert_eq!(misbehave(how).wait_with_output().unwrap().stdout, b"4\n", "{how} is refused");
    }
    assert!(misbehave("gone").wait().unwrap().success());
    assert_eq!(bench.client(ALL).answer, granted(2));
    for client in &mut silent {
        drop(client.stdin.take());
        client.wait().unwrap();
    }
}

#[test]
fn the_socket_permissions_and_caps_limit_a_pool() {
    let Some(bench) = Bench::with_pool(&["--owner", &NOBODY.to_string(), "--mode", "0600", "--per-user", "100M"])
    else {
        return;
    };
    let stranger =
        Command::new("setpriv").args(["--reuid=4711", "--clear-groups"]).arg(Programs::build().lease()).output();
    assert!(!stranger.unwrap().status.success());
    let client = bench.client_as(NOBODY, ALL, 1, "");
    assert_eq!(client.answer, granted(1));
    assert_eq!(bench.status()["leases"][0]["uid"], NOBODY);
    assert_eq!(bench.client_as(NOBODY, 1, 1, "").answer, denied(2), "over the user's cap");
    assert_eq!(bench.client(1).answer, granted(1), "root has a cap of its own");
    assert_eq!(bench.status()["per_user_bytes"], 100 << 20);
}

#[test]
fn a_job_gets_at_most_its_memory_limit_from_a_pool() {
    use linux::cgroup::{Cgroup, Swap};
    let Some(bench) = Bench::with_pool(&[]).filter(|_| can_limit()) else { return };
    let above = Cgroup::of(std::process::id() as i32).unwrap().unwrap();
    let name = format!("bursar-test-pool-{}", std::process::id());
    let Ok(cgroup) = above.create_child(&name) else {
        need("a cgroup that children can be made in", false);
        return;
    };
    cgroup.set_limit(Some(100 << 20), Swap::Allowed).unwrap();
    let inside = |bytes: u64| {
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", cgroup.dir().display());
        let mut command = Command::new("sh");
        command.args(["-c", &enter, "sh", Programs::build().lease()]).arg(bench.socket());
        Client::start(command.args([bytes.to_string(), "1".into(), "-1".into()]))
    };
    let first = inside(ALL);
    assert_eq!(first.answer, granted(1));
    assert_eq!(inside(1).answer, denied(3), "over the limit of the cgroup");
    assert_eq!(bench.client(1).answer, granted(1), "others are not concerned");
    first.end();
    cgroup.remove().unwrap();
}

#[test]
fn a_pool_grows_by_whole_segments_and_shrinks_by_free_ones() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let printed = bench.pool(&["grow", "65M"]);
    assert!(
        printed.contains("pool default: 256 MiB") && printed.contains("65.0 MiB rounded up to whole segments"),
        "{printed}"
    );
    assert_eq!(pages(), bench.pages_before + 128);
    let client = bench.client(3 * SEGMENT);
    assert_eq!(client.answer, granted(3));
    let printed = bench.pool(&["shrink", "128M"]);
    assert!(printed.contains("64.0 MiB of 128 MiB: no more was free given back, 192 MiB left"), "{printed}");
    assert_eq!(pages(), bench.pages_before + 96);
    client.end();
    bench.pool(&["destroy"]);
    bench.all_given_back();
}

/// Lowers the number as `sysctl --system`, tuned and the kubelet do.
#[test]
fn a_pool_keeps_its_pages_when_others_lower_nr_hugepages() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let set = |pages: u64| std::fs::write("/proc/sys/vm/nr_hugepages", pages.to_string()).unwrap();
    assert_eq!(bench.bytes("surplus_bytes"), 0);
    set(0);
    assert_eq!(bench.bytes("surplus_bytes"), 128 << 20);
    assert!(bench.pool(&["status"]).contains("128 MiB of it is more than vm.nr_hugepages allows"));
    let client = bench.client(2 * SEGMENT);
    assert_eq!(client.answer, granted(2));
    client.end();
    // Others may also raise it again, above the pool's number.
    set(bench.pages_before + 64 + 1);
    assert_eq!(bench.bytes("surplus_bytes"), 0);
    bench.pool(&["destroy"]);
    assert_eq!(pages(), bench.pages_before + 1, "the page that is not the pool's stays");
    set(bench.pages_before);
    bench.all_given_back();
}

#[test]
fn a_pool_whose_mount_is_gone_is_recreated() {
    let Some(bench) = Bench::with_pool(&[]) else { return };
    let state = std::fs::read(bench.base.path().join("default/pool.json")).unwrap();
    bench.pool(&["destroy"]);
    std::fs::create_dir(bench.base.path().join("default")).unwrap();
    std::fs::write(bench.base.path().join("default/pool.json"), state).unwrap();
    let mut broker = bench.serve();
    soon("populated", || bench.bytes("free_bytes") == 2 * SEGMENT);
    assert_eq!(bench.client(ALL).answer, granted(2));
    bench.pool(&["destroy"]);
    broker.wait().unwrap();
    bench.all_given_back();
}

#[test]
fn pools_are_interleaved_over_all_nodes_or_on_one() {
    let Some(bench) = Bench::with_pool(&["--node", "0"]) else { return };
    assert_eq!(bench.status()["nodes"][0]["node"], 0);
    bench.pool(&["destroy"]);
    bench.pool(&["create", "64M", "--node", "interleave"]);
    assert_eq!(bench.client(ALL).answer, granted(1));
}

#[test]
fn impossible_pools_are_refused_without_changes() {
    let Some(bench) = Bench::new() else { return };
    for (arguments, sentence) in [
        (&["create", "900T"][..], "are more than the"),
        (&["create", "0"], "0 is no size for a pool"),
        (&["create", "much"], "'much' is not a size"),
        (&["create", "64M", "--node", "99"], "there is no node 99 with memory; there is 0"),
        (&["create", "64M", "--node", "left"], "'left' is no node"),
        (&["create", "64M", "--page", "3M"], "no pages of 3.00 MiB; there are"),
        (&["create", "64M", "--name", "a/b"], "'a/b' is no name for a pool"),
        (&["create", "64M", "--owner", "no-such-user"], "there is no user 'no-such-user'"),
        (&["create", "64M", "--mode", "888"], "'888' is not the mode of a socket"),
        (&["status", "--name", "absent"], "there is no pool 'absent'"),
        (&["destroy"], "there is no pool 'default'"),
        (&["grow", "64M"], "there is no pool 'default'"),
        (&["serve"], "there is no pool 'default'"),
    ] {
        let stderr = bench.refused(arguments);
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
    }
    if !std::path::Path::new("/sys/bus/dax/devices").read_dir().is_ok_and(|mut devices| devices.next().is_some()) {
        let stderr = bench.refused(&["create", "64M", "--backend", "dax"]);
        assert!(stderr.contains("there is no device in /sys/bus/dax/devices"), "{stderr}");
    }
    bench.pool(&["create", "64M"]);
    assert!(bench.refused(&["create", "64M"]).contains("bursar pool grow"));
    bench.pool(&["destroy"]);
    bench.all_given_back();
    assert_eq!(bench.base.path().read_dir().unwrap().count(), 0, "a refused pool leaves no folder");
}

#[test]
fn the_folder_of_all_pools_is_removed_with_the_last() {
    let Some(bench) = Bench::new() else { return };
    let name = format!("test-{}", std::process::id());
    for action in [&["create", "64M"][..], &["destroy"]] {
        let mut command = bursar();
        command.arg("pool").args(action).args(["--name", &name]).env_remove("BURSAR_POOLS");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{action:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Other pools of this machine may exist.
    let left = std::path::Path::new("/run/bursar/pools").read_dir();
    assert!(left.map_or(true, |mut pools| pools.next().is_some()), "an empty folder is left");
    bench.all_given_back();
}
