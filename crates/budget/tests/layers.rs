//! The files of the planner import each other without cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The imports of each file, without unit tests. Files under `rules/` are one module.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path());
    let rules = std::fs::read_dir(source.join("rules")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files.chain(rules).filter(|path| path.extension().is_some_and(|ext| ext == "rs")) {
        let is_rule = path.parent().unwrap().ends_with("rules");
        let name = if is_rule { "rules".into() } else { path.file_stem().unwrap().to_str().unwrap().to_string() };
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().filter_map(|line| line.trim_start().strip_prefix("use crate::"));
        let modules = lines.map(|rest| rest.split([':', ';', '{', ' ']).next().unwrap().to_string());
        found.entry(name).or_default().extend(modules.filter(|module| !module.is_empty()));
    }
    found.remove("lib");
    let known: BTreeSet<String> = found.keys().cloned().collect();
    found.values_mut().for_each(|modules| modules.retain(|module| known.contains(module)));
    found
}

#[test]
fn files_of_the_planner_have_no_import_cycle() {
    let mut left = imports();
    assert!(left.len() > 20 && left["analysis"].contains("noise") && left["planner"].contains("rules"), "{left:?}");
    loop {
        let free: Vec<String> =
            left.iter().filter(|(_, modules)| modules.is_empty()).map(|(name, _)| name.clone()).collect();
        if free.is_empty() {
            break;
        }
        free.iter().for_each(|name| {
            left.remove(name);
        });
        left.values_mut().for_each(|modules| modules.retain(|module| !free.contains(module)));
    }
    assert!(left.is_empty(), "circles: {left:?}");
}
