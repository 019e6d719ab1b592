//! `bursar serve` with requests like Prometheus's, and with malformed ones.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use linux::cgroup::Tree;
use serde_json::Value;
use support::{bursar, bursar_as_nobody, is_root, need};

const MIB: f64 = 1048576.0;
const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";

/// Time after which an awaited event counts as failed.
const PATIENCE: Duration = Duration::from_secs(240);

/// `bursar serve` on a port of its own; ended when dropped.
struct Served {
    child: Child,
    errors: BufReader<ChildStderr>,
    address: String,
}

impl Served {
    fn start(arguments: &[&str]) -> Served {
        Served::by(&mut bursar(), arguments)
    }

    fn by(command: &mut Command, arguments: &[&str]) -> Served {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--interval", "50ms"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_string();
        Served { child, errors, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Head and body of the answer to these bytes.
    fn answer(&self, request: &[u8]) -> (String, String) {
        answer(self.connect(), request)
    }

    fn scrape(&self, accept: &str) -> (String, String) {
        self.answer(format!("GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n").as_bytes())
    }

    fn metrics(&self) -> Exposition {
        Exposition::of(&self.scrape(OPEN_METRICS).1, true)
    }

    /// The metrics, as soon as they meet the condition.
    fn metrics_when(&self, are_right: impl Fn(&Exposition) -> bool) -> Exposition {
        let begin = Instant::now();
        loop {
            let metrics = self.metrics();
            if are_right(&metrics) {
                return metrics;
            }
            assert!(begin.elapsed() < PATIENCE, "{metrics:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it by SIGTERM; returns its status and the rest of its standard error.
    fn end(mut self) -> (Option<i32>, String) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::TERM)
            .unwrap();
        let status = self.child.wait().unwrap().code();
        let mut stderr = String::new();
        self.errors.read_to_string(&mut stderr).unwrap();
        (status, stderr)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Head and body of the answer to these bytes.
fn answer(mut stream: TcpStream, request: &[u8]) -> (String, String) {
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    (head.to_string(), body.to_string())
}

/// A page of metrics; every line has been checked against the grammar.
#[derive(Debug, Default)]
struct Exposition {
    /// Types by the name of the family.
    kinds: BTreeMap<String, String>,
    /// Values by name and labels, as printed.
    samples: BTreeMap<String, f64>,
}

impl Exposition {
    /// Checks as strictly as OpenMetrics 1.0 requires (`is_open`), or text 0.0.4.
    fn of(text: &str, is_open: bool) -> Exposition {
        let text = match is_open {
            true => text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no end: {text}")),
            false => text,
        };
        assert!(text.ends_with('\n') && !text.contains("\n\n") && !text.contains("# EOF") && !text.contains('\r'));
        let mut page = Exposition::default();
        let mut family = String::new();
        let mut described = BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let (what, rest) = rest.split_once(' ').unwrap();
                let (name, value) = rest.split_once(' ').unwrap();
                if what == "TYPE" {
                    assert!(["gauge", "counter", "info"].contains(&value) && is_name(name), "{line}");
                    assert!(is_open || value != "info", "{line}");
                    assert!(page.kinds.insert(name.into(), value.into()).is_none(), "twice: {line}");
                    (family, described) = (name.into(), BTreeSet::new());
                }
                assert_eq!(name, family, "metadata stands before the samples of its family: {line}");
                assert!(described.insert(what.to_string()), "twice: {line}");
                match what {
                    "TYPE" => {}
                    "HELP" => assert!(!value.contains(['\\', '"']) && value.ends_with('.'), "{line}"),
                    "UNIT" => assert!(is_open && name.ends_with(&format!("_{value}")), "{line}"),
                    _ => panic!("{line}"),
                }
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            let (name, labels) = match series.split_once('{') {
                Some((name, rest)) => (name, rest.strip_suffix('}').unwrap_or_else(|| panic!("{line}"))),
                None => (series, ""),
            };
            let suffix = match (is_open, page.kinds[&family].as_str()) {
                (true, "counter") => "_total",
                (true, "info") => "_info",
                _ => "",
            };
            assert_eq!(name, format!("{family}{suffix}"), "{line}");
            assert!(!is_open || !described.contains("UNIT") || !name.ends_with("_info"), "{line}");
            check_labels(labels);
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(page.samples.insert(series.into(), value).is_none(), "twice: {line}");
        }
        page
    }

    /// The value of the series that has at least these labels.
    fn get(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let has = |series: &str| {
            let (found, found_labels) = series.split_once('{').unwrap_or((series, ""));
            found == name && labels.iter().all(|label| found_labels.contains(label))
        };
        self.samples.iter().find(|(series, _)| has(series)).map(|(_, value)| *value)
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// `name="value"`, separated by commas; in values only `\\`, `\"` and `\n` are escaped.
fn check_labels(mut text: &str) {
    let mut names = BTreeSet::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        assert!(is_name(name) && !name.starts_with("__") && names.insert(name), "{name}");
        let mut escaped = false;
        let end = rest.find(|c| {
            assert!(!escaped || ['\\', '"', 'n'].contains(&c), "{rest}");
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let rest = &rest[end.unwrap_or_else(|| panic!("{rest}")) + 1..];
        text = rest.strip_prefix(',').unwrap_or(rest);
        assert!(text.is_empty() == rest.is_empty(), "a comma at the end");
    }
}

/// Cgroups of the test; removed when dropped.
struct Cgroups(PathBuf);

impl Cgroups {
    /// `None` where none can be created.
    fn make(name: &str) -> Option<Cgroups> {
        let tree = Tree::find().ok()?;
        let dir = tree.point().join(format!("serve-test-{}-{name}", std::process::id()));
        let made = std::fs::create_dir(&dir).is_ok();
        let cgroups = Cgroups(dir);
        let is_there = made && cgroups.0.join("memory.stat").exists();
        need("a memory cgroup that can be written", is_there).then_some(cgroups)
    }

    fn add(&self, path: &str) -> PathBuf {
        let dir = self.0.join(path);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        let _ = Command::new("find").arg(&self.0).args(["-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]).status();
    }
}

/// A program that holds 64 MiB in a cgroup; ended when dropped.
struct Holder(Child);

impl Holder {
    fn start(dir: &Path) -> Holder {
        let script = "echo 0 > \"$0/cgroup.procs\" && exec python3 -c \"\
            import time; held = bytearray(64 << 20); print('held', flush=True); time.sleep(600)\"";
        let mut child = Command::new("sh").args(["-c", script]).arg(dir).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_slurm_step_has_its_labels_and_vanishes_with_its_cgroup() {
    let Some(cgroups) = Cgroups::make("step") else { return };
    let step = cgroups.add("job_7/step_0");
    let held = Holder::start(&step);
    let served = Served::start(&[]);
    let cgroup = format!("cgroup=\"/{}/job_7/step_0\"", cgroups.name());
    let labels = [cgroup.as_str(), "kind=\"slurm_step\"", "slurm_job=\"7\"", "slurm_step=\"0\""];
    let metrics = served.metrics();
    let get = |name: &str| metrics.get(name, &labels).unwrap_or_else(|| panic!("{name}: {metrics:?}"));
    let heap = metrics.get("bursar_cgroup_memory_bytes", &[&cgroup, "memory=\"heap\""]).unwrap();
    assert!((64.0..100.0).contains(&(heap / MIB)), "{heap}");
    assert!(get("bursar_cgroup_charge_bytes") >= heap);
    assert!(get("bursar_cgroup_floor_bytes") >= heap && get("bursar_cgroup_working_set_bytes") >= heap);
    let budget = get("bursar_cgroup_budget_estimate_bytes");
    assert!(budget >= heap && budget % MIB == 0.0, "{budget}");
    assert_eq!(get("bursar_cgroup_oom_kills_total"), 0.0);
    let job = metrics.get("bursar_cgroup_charge_bytes", &["kind=\"slurm_job\"", "slurm_job=\"7\""]);
    assert!(job.unwrap() >= heap, "the memory of a step counts in its job");

    // Memory that the step freed stays in its peak.
    drop(held);
    let is_empty =
        |page: &Exposition| page.get("bursar_cgroup_memory_bytes", &[&cgroup, "memory=\"heap\""]).unwrap() < MIB;
    let after = served.metrics_when(is_empty);
    assert!(after.get("bursar_cgroup_floor_bytes", &[&cgroup]).unwrap() >= heap);
    // A new cgroup of the same path has its own figures.
    std::fs::remove_dir(&step).unwrap();
    served.metrics_when(|page| page.get("bursar_cgroup_charge_bytes", &[&cgroup]).is_none());
    cgroups.add("job_7/step_0");
    let again = served.metrics_when(|page| page.get("bursar_cgroup_charge_bytes", &[&cgroup]).is_some());
    assert!(again.get("bursar_cgroup_floor_bytes", &[&cgroup]).unwrap() < MIB, "{again:?}");
}

#[test]
fn only_matching_cgroups_are_scanned_and_excess_is_counted() {
    let Some(cgroups) = Cgroups::make("cap") else { return };
    for name in ["a.service", "b.service", "c", "quo\"te\\", "inner/leaf"] {
        cgroups.add(name);
    }
    let all = format!("{}/*", cgroups.name());
    let names = |arguments: &[&str]| -> Vec<String> {
        let page = Served::start(arguments).metrics();
        let charge = page.samples.keys().filter_map(|series| series.strip_prefix("bursar_cgroup_charge_bytes{"));
        charge.filter_map(|labels| Some(labels.split("\",kind").next()?.rsplit('/').next()?.to_string())).collect()
    };
    assert_eq!(names(&[&all]), ["a.service", "b.service", "c", "inner", "quo\\\"te\\\\"]);
    let by_path = cgroups.0.join("*.service").display().to_string();
    assert_eq!(names(&[&by_path]), ["a.service", "b.service"]);
    assert_eq!(names(&[&format!("{all}*/leaf")]), ["leaf"]);
    let page = Served::start(&[&all, "--max-cgroups", "2"]).metrics();
    assert_eq!((page.get("bursar_cgroups", &[]), page.get("bursar_cgroups_left_out", &[])), (Some(2.0), Some(3.0)));
    let refused = bursar().args(["serve", "a[", "--listen", "127.0.0.1:0"]).output().unwrap();
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(125) && complaint.contains("'a['"), "{complaint}");
}

#[test]
fn both_formats_are_valid_and_have_equal_values() {
    let served = Served::start(&[]);
    let (head, text) = served.scrape("text/plain");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", text.len())), "{head}");
    let (head, open) = served.scrape(OPEN_METRICS);
    assert!(head.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    let (text, open) = (Exposition::of(&text, false), Exposition::of(&open, true));
    assert_eq!(text.kinds.len(), open.kinds.len());
    assert_eq!(text.kinds["bursar_cgroup_refaults_total"], open.kinds["bursar_cgroup_refaults"]);
    assert_eq!((&*open.kinds["bursar_build"], &*text.kinds["bursar_build_info"]), ("info", "gauge"));
    assert!(open.get("process_resident_memory_bytes", &[]).unwrap() > MIB);
    assert!(open.get("bursar_scan_duration_seconds", &[]).unwrap() > 0.0);
    let begin = open.get("bursar_scans_total", &[]).unwrap();
    served.metrics_when(|page| page.get("bursar_scans_total", &[]).unwrap() > begin);
}

#[test]
fn slow_silent_or_wrong_clients_delay_no_others() {
    let served = Served::start(&[]);
    let status = |request: &[u8]| served.answer(request).0.split(' ').nth(1).unwrap().to_string();
    assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "400", "TLS");
    assert_eq!(status(b"DELETE /metrics HTTP/1.1\r\n\r\n"), "405");
    assert_eq!(status(b"GET /else HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status(&[b"GET /".as_slice(), &[b'a'; 9000]].concat()), "431");
    assert_eq!(served.answer(b"HEAD /metrics HTTP/1.0\r\n\r\n").1, "");
    // One client does not finish its request, many send none, and one does not read its answer.
    let mut slow = served.connect();
    slow.write_all(b"GET /metrics HT").unwrap();
    let silent: Vec<TcpStream> = (0..200).map(|_| served.connect()).collect();
    let mut deaf = served.connect();
    deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let page = served.metrics_when(|page| page.get("bursar_http_connections_dropped_total", &[]) > Some(100.0));
    assert!(page.get("bursar_http_requests_total", &["code=\"405\""]) >= Some(1.0), "{page:?}");
    // A request in small pieces is answered, too.
    let mut pieces = served.connect();
    for byte in b"GET / HTTP/1.1\r\n\r\n" {
        pieces.write_all(&[*byte]).unwrap();
    }
    let mut answer = String::new();
    pieces.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("/metrics"), "{answer}");
    drop((silent, deaf, slow));
    let (status, stderr) = served.end();
    assert!(status == Some(0) && stderr.lines().all(|line| line.contains("the interval is")), "{stderr}");
}

#[test]
fn thousands_of_cgroups_delay_neither_answers_nor_the_end() {
    let Some(cgroups) = Cgroups::make("many") else { return };
    (0..3000).for_each(|number| drop(cgroups.add(&number.to_string())));
    let served = Served::start(&["--max-cgroups", "5000"]);
    let page = served.metrics_when(|page| page.get("bursar_scan_interval_seconds", &[]).unwrap() > 0.05);
    assert!(page.get("bursar_cgroups", &[]).unwrap() >= 3000.0);
    let before = page.get("bursar_scans_total", &[]).unwrap();
    served.metrics_when(|page| page.get("bursar_scans_total", &[]).unwrap() > before);
    let (status, stderr) = served.end();
    assert_eq!(status, Some(0));
    assert!(stderr.contains("the interval is") && stderr.contains("instead of 0.1 s"), "{stderr}");
}

#[test]
fn the_first_scan_delays_no_client() {
    let Some(cgroups) = Cgroups::make("first") else { return };
    (0..3000).for_each(|number| drop(cgroups.add(&number.to_string())));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut child =
        bursar().args(["serve", "--listen", &free, "--max-cgroups", "5000"]).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let stream = loop {
        match TcpStream::connect(&free) {
            Ok(stream) => break stream,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let (head, body) = answer(stream, b"GET /metrics HTTP/1.1\r\n\r\n");
    let is_early = head.starts_with("HTTP/1.1 503 ") && body.contains("first scan");
    assert!(is_early || head.starts_with("HTTP/1.1 200 "), "{head}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_port_in_use_is_reported_in_one_sentence() {
    let served = Served::start(&[]);
    let other = bursar().args(["serve", "--listen", &served.address]).output().unwrap();
    let complaint = String::from_utf8(other.stderr).unwrap();
    assert_eq!((other.status.code(), complaint.lines().count()), (Some(125), 1), "{complaint}");
    assert!(complaint.contains("in use by another program") && complaint.contains("--listen"), "{complaint}");
    let nowhere = bursar().args(["serve", "--listen", "192.0.2.1:80"]).output().unwrap();
    let complaint = String::from_utf8(nowhere.stderr).unwrap();
    assert!(nowhere.status.code() == Some(125) && complaint.contains("192.0.2.1:80"), "{complaint}");
    // At once: connections of the previous server do not block the port.
    let address = served.address.clone();
    served.metrics();
    served.end();
    let mut again = bursar().args(["serve", "--listen", &address]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(again.stderr.take().unwrap()).read_line(&mut line).unwrap();
    again.kill().unwrap();
    again.wait().unwrap();
    assert!(line.contains(&address), "{line}");
}

#[test]
fn a_user_without_rights_gets_the_same_metrics() {
    if !is_root() {
        return;
    }
    let Some(cgroups) = Cgroups::make("nobody") else { return };
    let held = Holder::start(&cgroups.add("held"));
    let folder = tempfile::tempdir().unwrap();
    let served = Served::by(&mut bursar_as_nobody(folder.path()), &[&format!("{}/*", cgroups.name())]);
    let heap = served.metrics().get("bursar_cgroup_memory_bytes", &["memory=\"heap\""]);
    assert!(heap.unwrap() >= 64.0 * MIB, "{heap:?}");
    drop(held);
}

fn dashboard() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana/bursar.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The queries of its panels.
fn queries() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().to_string()).collect()
}

fn which(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[test]
fn the_dashboard_queries_only_existing_metrics() {
    let dashboard = dashboard();
    assert!(dashboard["title"].is_string() && dashboard["uid"].is_string() && dashboard.get("id").is_none());
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36));
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let is_source = |one: &&Value| one["type"] == "datasource" && one["query"] == "prometheus";
    let source = variables.iter().find(is_source).unwrap()["name"].as_str().unwrap();
    let source = format!("${{{source}}}");
    let mut asked: Vec<&str> = variables.iter().filter_map(|one| one["query"]["query"].as_str()).collect();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let place = &panel["gridPos"];
        assert!(place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24, "{panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(
                (&target["datasource"]["uid"], &panel["datasource"]["uid"]),
                (&Value::from(&*source), &source.clone().into())
            );
            asked.push(target["expr"].as_str().unwrap());
        }
    }
    let (_, text) = Served::start(&[]).scrape("text/plain");
    let exported = Exposition::of(&text, false).kinds;
    let words = asked.iter().flat_map(|query| query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let named: BTreeSet<&str> =
        words.filter(|word| word.starts_with("bursar_") || word.starts_with("process_")).collect();
    assert!(named.len() > 15, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|name| !exported.contains_key(**name)).collect();
    assert!(missing.is_empty(), "no such metrics: {missing:?}");
    let book = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.md")).unwrap();
    let missing: Vec<_> = exported.keys().filter(|name| !book.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/serve.md does not name {missing:?}");
}

/// Prometheus with its own storage, which scrapes one agent each second; ended when dropped.
struct Prometheus {
    child: Child,
    address: String,
    _store: tempfile::TempDir,
}

impl Prometheus {
    fn start(asked: &str) -> Prometheus {
        let store = tempfile::tempdir().unwrap();
        let config = store.path().join("prometheus.yml");
        let jobs = format!("[{{job_name: bursar, static_configs: [{{targets: ['{asked}']}}]}}]");
        std::fs::write(&config, format!("global: {{scrape_interval: 1s}}\nscrape_configs: {jobs}\n")).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", store.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Prometheus { child, address, _store: store }
    }

    /// The number of series that answer a query; an error of the query as text.
    fn series(&self, query: &str) -> Result<usize, String> {
        let stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (_, body) = answer(stream, format!("GET /api/v1/query?query={escaped} HTTP/1.0\r\n\r\n").as_bytes());
        let answer: Value = serde_json::from_str(&body).map_err(|_| body.clone())?;
        answer["data"]["result"].as_array().map(Vec::len).ok_or(body)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_answers_every_query_of_the_dashboard() {
    if !need("prometheus (package prometheus)", which("prometheus")) {
        return;
    }
    let Some(cgroups) = Cgroups::make("prometheus") else { return };
    let _held = Holder::start(&cgroups.add("job_7/step_0"));
    let served = Served::start(&[]);
    let mut checker = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checker.stdin.take().unwrap().write_all(served.scrape("text/plain").1.as_bytes()).unwrap();
    let found = checker.wait_with_output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));

    let prometheus = Prometheus::start(&served.address);
    let begin = Instant::now();
    while prometheus.series("rate(bursar_scans_total[15s])") != Ok(1) {
        assert!(begin.elapsed() < PATIENCE, "{:?}", prometheus.series("up"));
        std::thread::sleep(Duration::from_millis(200));
    }
    // Cgroups of other programs appear and vanish between two scrapes.
    let own = format!("{}/job_7/step_0", cgroups.0.file_name().unwrap().display());
    let label = format!("{own}\"");
    let mut answered = 0;
    for query in queries() {
        let plain = query.replace("$__rate_interval", "15s").replace("$__range", "1m");
        let plain = plain.replace("$cgroup", &format!(".*/{own}"));
        let plain = ["$instance", "$kind"].iter().fold(plain, |text, name| text.replace(name, ".+"));
        let words = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: Vec<&str> =
            words.filter(|word| word.starts_with("bursar_") || word.starts_with("process_")).collect();
        // A figure that this kernel lacks is absent there, too.
        let is_there = || {
            let exported = Exposition::of(&served.scrape("text/plain").1, false);
            let labels =
                |name: &str| if name.starts_with("bursar_cgroup_") { vec![label.as_str()] } else { Vec::new() };
            named.iter().all(|name| exported.get(name, &labels(name)).is_some())
        };
        let is_answered = || prometheus.series(&plain).unwrap_or_else(|error| panic!("{plain}: {error}")) > 0;
        // A new series is in the agent's answer before Prometheus has scraped it.
        let begin = Instant::now();
        let (mut found, mut expected) = (is_answered(), is_there());
        while found != expected && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(200));
            (found, expected) = (is_answered(), is_there());
        }
        assert_eq!(found, expected, "{plain}");
        answered += usize::from(expected);
    }
    assert!(answered > 15, "{answered}");
}

#[test]
fn the_recording_rule_of_the_book_names_pods() {
    if !need("promtool (package prometheus)", which("promtool")) {
        return;
    }
    let book = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.md")).unwrap();
    let rule = book.split("    - record:").nth(1).unwrap().split("\n\n").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rule.yml"), format!("groups:\n- name: book\n  rules:\n    - record:{rule}\n"))
        .unwrap();
    // The rate query of the adapter, from the book.
    let test = "rule_files: [rule.yml]
tests:
- interval: 1m
  input_series:
  - {series: 'bursar_cgroup_working_set_bytes{cgroup=\"/kubepods/burstable/pod8c2e-11\",kind=\"pod\",pod_uid=\"8c2e-11\"}', values: '100 100'}
  - {series: 'bursar_cgroup_working_set_bytes{cgroup=\"/kubepods/burstable/pod8c2e-11/a\",kind=\"container\",pod_uid=\"8c2e-11\"}', values: '70 70'}
  - {series: 'kube_pod_info{uid=\"8c2e-11\",namespace=\"web\",pod=\"db-0\",node=\"n1\"}', values: '1 1'}
  promql_expr_test:
  - expr: 'max(pod:bursar_working_set_bytes{namespace=\"web\",pod=~\"db-0|db-1\"}) by (pod)'
    eval_time: 1m
    exp_samples: [{labels: '{pod=\"db-0\"}', value: 100}]
";
    std::fs::write(folder.path().join("test.yml"), test).unwrap();
    let tested = Command::new("promtool").args(["test", "rules"]).arg(folder.path().join("test.yml")).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&[tested.stdout, tested.stderr].concat()));
}

#[test]
fn systemd_accepts_the_unit() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/bursar-serve.service");
    let text = std::fs::read_to_string(path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("bursar-serve.service");
    let own = assert_cmd::cargo::cargo_bin("bursar").display().to_string();
    std::fs::write(&unit, text.replace("/usr/local/bin/bursar", &own)).unwrap();
    let Ok(verified) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output() else {
        need("systemd-analyze", false);
        return;
    };
    let stderr = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !stderr.contains("bursar-serve"), "{stderr}");
}
