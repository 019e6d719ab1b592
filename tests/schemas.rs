//! The JSON of each command has a schema in `docs/schema/`, generated from the types that are written.
//! `BURSAR_WRITE_GOLDEN=1` writes the schemas.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use support::bursar;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The schema of each document, by the name of its file.
fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("advise-attach-stats", of::<controller::huge_pages::Stats>()),
        ("advise-costs", of::<controller::huge_pages::costs::Calibrated>()),
        ("advise-decisions", of::<report::DecisionsJson<'static>>()),
        ("advise-run-stats", of::<controller::huge_pages::advised::Stats<'static>>()),
        ("advise-try", of::<model::ArmsReport>()),
        ("attribute", of::<session::attribution::Figures<'static>>()),
        ("balance", of::<report::balance::Interval>()),
        ("budget", of::<model::BudgetReport>()),
        ("check", of::<report::check::Json<'static>>()),
        ("curve-trace", of::<model::TraceCurve>()),
        ("diff", of::<history::difference::Figures<'static>>()),
        ("doctor", of::<session::ability::Json<'static>>()),
        ("faults", of::<session::faulting::Figures<'static>>()),
        ("phases", of::<model::PhaseReplay>()),
        ("pool-size", of::<session::provisioned::Needed<'static>>()),
        ("pool-status", of::<provision::manage::PoolsJson<'static>>()),
        ("predict", of::<report::predict::Json<'static>>()),
        ("predict-plan", of::<predict::Plan>()),
        ("provision-stats", of::<session::provisioned::Stats<'static>>()),
        ("recommend", of::<model::JobsMemory>()),
        ("record", of::<export::Document<'static>>()),
        ("run", of::<report::RunFigures<'static>>()),
        ("run-merged", of::<session::merge::Figures<'static>>()),
        ("tasks", of::<report::Tasks>()),
        ("watch", of::<model::WatchInterval>()),
    ]
}

/// Names of properties, at any depth.
fn properties(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(named)) = fields.get("properties") {
                into.extend(named.keys().cloned());
            }
            fields.values().for_each(|value| properties(value, into));
        }
        Value::Array(values) => values.iter().for_each(|value| properties(value, into)),
        _ => {}
    }
}

#[test]
fn schemas_are_those_of_the_types() {
    for (name, schema) in schemas() {
        let path = folder().join(format!("{name}.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("BURSAR_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == text, "docs/schema/{name}.json: the types differ. BURSAR_WRITE_GOLDEN=1 writes it again");
    }
    let kept = std::fs::read_dir(folder()).unwrap().count();
    assert_eq!(kept, schemas().len(), "docs/schema has files of no document");
}

#[test]
fn every_property_is_explained_in_the_book() {
    let contract = std::fs::read_to_string(folder().join("../json.md")).unwrap();
    for (name, schema) in schemas().into_iter().filter(|(name, _)| *name != "record") {
        let mut names = BTreeSet::new();
        properties(schema.as_value(), &mut names);
        let missing: Vec<_> = names.iter().filter(|name| !contract.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/json.md does not name {missing:?} of {name}");
    }
}

/// Reads each document of a file, a line each if there are several, and checks it against a schema, which must name
/// every member. The schemas do not say that themselves, because later versions may add names.
const VALIDATE: &str = "
import json, sys, jsonschema
schema, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
try:
    documents = [json.loads(text)]
except json.JSONDecodeError:
    documents = [json.loads(line) for line in text.splitlines()]
assert documents, 'nothing was written'
for part in [schema, *schema.get('$defs', {}).values()]:
    part.setdefault('unevaluatedProperties', False)
for document in documents:
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
";

/// Runs bursar with these words, and checks the JSON in the file `out` of the folder.
fn assert_valid(folder: &Path, schema: &str, words: &[&str]) {
    let run = bursar().args(words).current_dir(folder).output().unwrap();
    let out = folder.join("out");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(out.exists(), "bursar {words:?} wrote no JSON: {errors}");
    let schema = self::folder().join(format!("{schema}.json"));
    let checked = Command::new("python3").args(["-c", VALIDATE]).args([&schema, &out]).output().unwrap();
    let errors = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "bursar {words:?} does not follow {}: {errors}", schema.display());
    std::fs::remove_file(out).unwrap();
}

#[test]
fn json_of_each_command_follows_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("trace.csv"), "time,key,size\n1,a,100\n2,b,100\n3,a,100\n").unwrap();
    std::fs::write(
        folder.join("sacct.txt"),
        "JobID|JobName|State|ElapsedRaw|ReqMem|NNodes|MaxRSS\n1|sim|COMPLETED|60|4G|1|\n1.batch|batch|COMPLETED|60||1|1G\n",
    )
    .unwrap();
    let valid = |schema, words: &str| assert_valid(folder, schema, &words.split(' ').collect::<Vec<_>>());
    let load = "dd if=/dev/zero of=/dev/null bs=8M count=100";
    valid("run", &format!("run -q --record a.bursar --json out -- {load}"));
    valid("run", &format!("run -q -n 2 --record b.bursar --json out -- {load}"));
    valid("run", "report -q a.bursar --json out");
    valid("record", "report a.bursar --format json -o out");
    valid("budget", &format!("budget -q --slowdown 1000% --record budget.bursar --json out -- {load}"));
    valid("record", "report budget.bursar --format json -o out");
    valid("attribute", &format!("attribute -q --json out -- {load}"));
    valid("faults", &format!("faults -q --json out -- {load}"));
    valid("watch", &format!("watch -q --json out -- {load}"));
    valid("check", &format!("check --max 1G --json out -- {load}"));
    valid("check", &format!("check --baseline b.bursar --json out -- {load}"));
    valid("diff", "diff a.bursar b.bursar --json out");
    valid("predict", &format!("predict --from . --json out -- {load}"));
    valid("predict-plan", &format!("predict --plan --from . --size 1G --json out -- {load}"));
    valid("recommend", "recommend --from sacct.txt --gatherer linux --json out");
    valid("curve-trace", "curve trace trace.csv --bytes --json out");
    valid("advise-try", &format!("advise try -q --rounds 2 --json out -- {load}"));
    valid("advise-run-stats", &format!("advise run -q --record advised.bursar --stats out -- {load}"));
    valid("advise-decisions", "report -q advised.bursar --json out");
    valid("provision-stats", &format!("provision -q --stats out -- {load}"));
    valid("pool-size", &format!("pool size -q --json out -- {load}"));
    valid("pool-status", "pool status --json out");
    valid("doctor", "doctor --json out");
}
