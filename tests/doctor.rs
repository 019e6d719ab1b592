//! `bursar doctor` advises only what would help the user who asks.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::filter::{ALLOWS, ENOSYS, EPERM, under};
use support::{bursar, can_unshare, copy_program, is_root, need};

const DROP_ALL: [&str; 3] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const ROOT_OF_A_NAMESPACE: [&str; 3] = ["unshare", "--user", "--map-root-user"];

/// The findings of doctor when these words run it.
fn findings(words: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bursar");
    copy_program(Path::new(bursar().get_program()), &program);
    let mut command = Command::new(words.first().copied().unwrap_or("env"));
    // Without the machine's own pool.
    command.env("BURSAR_POOLS", folder.path().join("pools"));
    let output = command.args(words.iter().skip(1)).arg(&program).args(["doctor", "--json", "-"]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    json["findings"].as_array().unwrap().clone()
}

/// The advice of doctor when these words run it.
fn advice(words: &[&str]) -> Vec<String> {
    findings(words).iter().filter_map(|finding| finding["enable"].as_str()).map(str::to_string).collect()
}

/// The advice for one rung.
fn advice_for<'a>(findings: &'a [Value], rung: &str) -> Option<&'a str> {
    findings.iter().find(|finding| finding["rung"] == rung).unwrap()["enable"].as_str()
}

fn asks_for_root(advice: &[String]) -> Vec<&String> {
    let asks = |advice: &&String| advice.contains("sudo") || advice.contains("as root") || advice.contains("setcap");
    advice.iter().filter(asks).collect()
}

#[test]
fn a_user_who_can_become_root_is_advised_to_do_so() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    if !is_root() || !need("a session without a seccomp filter", status.contains("\nSeccomp:\t0\n")) {
        return;
    }
    let findings = findings(&NOBODY);
    for rung in ["scheduler tracepoints", "taskstats", "Accessed bits in page tables", "drop_caches", "pool"] {
        let advice = advice_for(&findings, rung);
        assert!(advice.is_some_and(|advice| advice.starts_with("sudo ")), "{rung}: {advice:?}");
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let of_the_kernel = advice_for(&findings, "by touch: page-fault events");
    let expected = (paranoid.trim() > "1").then_some("sudo sysctl kernel.perf_event_paranoid=1");
    assert_eq!(of_the_kernel, expected);
}

#[test]
fn root_without_capabilities_is_not_advised_to_become_root() {
    if is_root() {
        let advice = advice(&DROP_ALL);
        let asking = asks_for_root(&advice);
        assert!(asking.is_empty(), "{asking:?}");
    }
}

#[test]
fn a_user_is_not_advised_to_become_root_where_that_gains_nothing() {
    if !is_root() {
        return;
    }
    let mut all = vec![[&NOBODY[..], &["--no-new-privs"]].concat()];
    for filter in [ALLOWS, EPERM, ENOSYS] {
        all.extend([under(filter), [&under(filter)[..], &NOBODY].concat()]);
    }
    if can_unshare(&ROOT_OF_A_NAMESPACE[1..]) {
        all.extend([vec!["unshare", "--user", "--map-user=1000"], ROOT_OF_A_NAMESPACE.to_vec()]);
    }
    for words in all {
        let advice = advice(&words);
        let asking = asks_for_root(&advice);
        assert!(asking.is_empty(), "{words:?}: {asking:?}");
    }
}

#[test]
fn root_gets_no_advice_that_something_needs_root() {
    if !is_root() {
        return;
    }
    let mut all = vec![DROP_ALL.to_vec(), under(EPERM), under(ENOSYS)];
    if can_unshare(&ROOT_OF_A_NAMESPACE[1..]) {
        all.push(ROOT_OF_A_NAMESPACE.to_vec());
    }
    for words in all {
        for finding in findings(&words) {
            let why = finding["why"].as_str().unwrap();
            let asks_for_root = ["need root", "needs root", "as root"].iter().any(|word| why.contains(word));
            assert!(!asks_for_root, "{words:?}: {finding}");
        }
    }
}

#[test]
fn a_pool_is_not_advised_to_a_root_who_cannot_mount_its_memory() {
    if !is_root() {
        return;
    }
    let mut all = vec![DROP_ALL.to_vec()];
    if can_unshare(&ROOT_OF_A_NAMESPACE[1..]) {
        all.push(ROOT_OF_A_NAMESPACE.to_vec());
    }
    for words in all {
        assert_eq!(advice_for(&findings(&words), "pool"), None, "{words:?}");
    }
}

#[test]
fn perf_event_paranoid_is_not_advised_where_seccomp_refuses_the_call() {
    if !is_root() {
        return;
    }
    for filter in [EPERM, ENOSYS] {
        for words in [under(filter), [&under(filter)[..], &NOBODY].concat()] {
            let findings = findings(&words);
            let events = findings.iter().find(|finding| finding["rung"] == "by touch: page-fault events").unwrap();
            assert!(!events["there"].as_bool().unwrap(), "the filter refuses nothing: {events}");
            let enabling: Vec<_> = findings.iter().filter_map(|finding| finding["enable"].as_str()).collect();
            assert!(!enabling.iter().any(|advice| advice.contains("perf_event_paranoid")), "{words:?}: {enabling:?}");
        }
    }
}

#[test]
fn programs_that_are_not_installed_are_not_advised() {
    for advice in advice(&["env", "PATH=/nowhere"]) {
        let mut words = advice.split(' ');
        assert!(!words.any(|word| ["salloc", "loginctl", "systemd-run", "apt", "docker"].contains(&word)), "{advice}");
    }
}

#[test]
fn an_allocation_is_advised_where_slurm_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("salloc"), "").unwrap();
    let path = format!("PATH={}", folder.path().display());
    let is_advised = |words: &[&str]| advice(words).iter().any(|advice| advice.starts_with("salloc "));
    assert!(is_advised(&["env", &path, "SLURM_CONF=/etc/elsewhere.conf"]));
    let is_configured = ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];
    if !is_configured.iter().any(|file| std::path::Path::new(file).exists()) {
        assert!(!is_advised(&["env", "-u", "SLURM_CONF", &path]), "the commands alone are no cluster");
    }
}

#[test]
fn writes_json_to_a_file_beside_the_report() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["doctor"][..], &["pool", "status"]] {
        let json = folder.path().join("doctor.json");
        let mut command = bursar();
        let command = command.args(words).arg("--json").arg(&json).env("BURSAR_POOLS", folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{words:?}: {output:?}");
        serde_json::from_slice::<Value>(&std::fs::read(&json).unwrap()).unwrap();
    }
}

#[test]
fn prints_five_lines_and_all_sources_only_with_verbose() {
    let text =
        |options: &[&str]| String::from_utf8(bursar().arg("doctor").args(options).output().unwrap().stdout).unwrap();
    let short = text(&[]);
    let lines: Vec<&str> = short.lines().collect();
    for (line, command) in lines.iter().zip(["run", "budget", "watch", "attribute", "provision"]) {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some(command), "{short}");
        assert!(words.next().is_some_and(|works| ["yes", "partly", "no"].contains(&works)), "{short}");
    }
    assert_eq!(lines.len(), 7, "{short}");
    let whole = text(&["-v"]);
    assert!(whole.starts_with(&lines[..5].join("\n")) && whole.contains("\nplacement\n"), "{whole}");
}
