//! The book names every option that scripts may rely on; `schemas.rs` tests the same of every field.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::{Method, Outcome};
use support::bursar;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn book() -> String {
    let chapters = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let chapters = chapters.filter(|path| path.extension().is_some_and(|end| end == "md"));
    chapters.map(|path| std::fs::read_to_string(path).unwrap()).collect::<String>() + &read("README.md")
}

#[test]
fn every_outcome_and_method_is_in_the_contract() {
    let contract = read("docs/json.md");
    let outcomes = [Outcome::Ok, Outcome::TooSlow, Outcome::Oom, Outcome::Timeout, Outcome::Failed];
    let methods = [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss, Method::Unlimited, Method::Bursar];
    let words = outcomes.iter().map(|o| serde_json::to_value(o).unwrap());
    for word in words.chain(methods.iter().map(|m| serde_json::to_value(m).unwrap())) {
        assert!(contract.contains(&format!("`{}`", word.as_str().unwrap())), "docs/json.md does not name {word}");
    }
}

#[test]
fn every_option_is_in_the_book() {
    let book = book();
    let words: BTreeSet<&str> = book.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    for action in [
        "run",
        "budget",
        "balance",
        "attribute",
        "faults",
        "watch",
        "check",
        "diff",
        "serve",
        "report",
        "curve trace",
        "advise try",
        "advise costs",
        "advise convert",
        "pool create",
        "pool size",
        "pool status",
        "pool grow",
        "pool destroy",
        "doctor",
    ] {
        let help = bursar().args(action.split(' ')).arg("--help").output().unwrap().stdout;
        let help = String::from_utf8(help).unwrap();
        let options: BTreeSet<&str> = help
            .lines()
            .filter(|line| line.trim_start().starts_with('-'))
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
            .filter(|option| *option != "--help")
            .collect();
        assert!(!options.is_empty(), "{help}");
        for option in options {
            assert!(words.contains(option), "the book does not name bursar {action} {option}");
        }
    }
}

/// The pages of the book, in subfolders too.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
    files.chain(folders.iter().flat_map(|folder| pages(folder))).collect()
}

/// Targets of the links of a page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[test]
fn every_link_leads_to_a_page_and_its_heading() {
    let others = [root().join("README.md"), root().join("CHANGELOG.md")];
    for page in pages(&root().join("docs")).into_iter().chain(others) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let found = headings.any(|line| anchor(line.trim_start_matches('#')) == heading);
                assert!(found, "{}: no heading {link}", page.display());
            }
        }
    }
}

#[test]
fn navigation_lists_every_page() {
    let docs = root().join("docs");
    let summary = read("docs/SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&summary).map(|link| docs.join(link)).collect();
    let mut expected: BTreeSet<PathBuf> = pages(&docs).into_iter().collect();
    expected.remove(&docs.join("SUMMARY.md"));
    assert_eq!(listed, expected);
}

/// All files beneath a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { BTreeSet::from([path]) }).collect()
}

#[test]
fn each_command_has_a_man_page_that_is_installed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (built, installed) = (folder.path().join("built"), folder.path().join("installed"));
    std::fs::create_dir_all(built.join("release")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bursar"), built.join("release/bursar")).unwrap();
    let mut pages = std::process::Command::new(root().join("scripts/pages"));
    assert!(pages.arg(env!("CARGO_BIN_EXE_bursar")).arg(built.join("built")).status().unwrap().success());
    let make = |target: &str| {
        let mut make = std::process::Command::new("make");
        make.arg("-C").arg(root()).args([target, "PREFIX=/usr"]);
        make.arg(format!("TARGET={}", built.display())).arg(format!("DESTDIR={}", installed.display()));
        let output = make.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    make("install");
    let pages = installed.join("usr/share/man/man1");
    for (page, option) in [("bursar", "budget"), ("bursar-run", "limit"), ("bursar-pool-create", "owner")] {
        let text = std::fs::read_to_string(pages.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(option) && text.contains(".TH"), "{page}: {text}");
    }
    let commands = ["attribute", "watch", "report", "advise-run", "curve-trace", "pool-size"];
    assert!(commands.iter().all(|command| pages.join(format!("bursar-{command}.1")).exists()), "{:?}", files(&pages));
    assert!(files(&pages).iter().all(|page| !page.to_string_lossy().contains("node")), "nothing hidden");
    make("uninstall");
    assert_eq!(files(&installed), BTreeSet::new());
}
