//! `bursar budget --fast-tier`, with a program that accesses a part of its memory in a loop: the rest may be in slower memory.

mod support;

use serde_json::Value;
use support::zram::Zram;
use support::{Programs, bursar, can_limit, is_root, json_of};

const MIB: u64 = 1 << 20;

#[test]
fn only_reused_memory_must_be_in_the_fast_tier() {
    if !can_limit() || !is_root() {
        return;
    }
    let Some(_zram) = Zram::of(512) else { return };
    let options = ["budget", "-q", "--json", "-", "--no-compare", "--slowdown", "60%", "--fast-tier", "ram"];
    let (status, json) =
        json_of(bursar().args(options).arg("--").args([Programs::build().heaps(), "160", "48", "250"]));
    assert_eq!((status, &json["fast_tier"]), (0, &Value::from("ram")));
    let budget = json["budget_bytes"].as_u64().unwrap() / MIB;
    assert!((48..150).contains(&budget), "{json:#}");
    assert!(json["floor_bytes"].as_u64().unwrap() >= 208 * MIB, "{}", json["floor_bytes"]);
}

#[test]
fn missing_slower_memory_is_named() {
    let status_and_stderr = |tier: &str| {
        let output = bursar().args(["budget", "--fast-tier", tier, "--", "true"]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, errors) = status_and_stderr("900");
    assert!(status == Some(125) && errors.contains("no NUMA node 900"), "{errors}");
    let (status, errors) = status_and_stderr("zram");
    assert!(status == Some(125) && errors.contains("write ram"), "{errors}");
}
