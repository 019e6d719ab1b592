//! Old names of commands and options, which are answered with the new ones.

use std::ffi::OsString;

/// Words that a command line began with, and what stands in their place now.
const COMMANDS: [(&[&str], &str); 6] = [
    (&["slurm", "recommend"], "bursar recommend"),
    (&["slurm"], "bursar recommend"),
    (&["export"], "bursar report RECORD --format FORMAT -o FILE"),
    (&["merge"], "bursar report RECORD…"),
    (&["curve", "replay"], "bursar report --phases RECORD…"),
    (&["advise", "explain"], "bursar report RECORD"),
];

/// An option of a command, and what stands in its place now.
const OPTIONS: [(&str, &str, &str); 4] = [
    ("budget", "--provisioned", "bursar pool size -- COMMAND"),
    ("run", "--attach", "bursar run --pid PID` or `bursar run --cgroup PATH"),
    ("watch", "--replay", "bursar report --replay RECORD"),
    ("attribute", "--from", "bursar report FOLDER…"),
];

/// The sentence that answers a command line of an old name.
pub fn sentence(words: &[OsString]) -> Option<String> {
    let words = words.get(1..).unwrap_or_default();
    let begins = |old: &[&str]| words.len() >= old.len() && old.iter().zip(words).all(|(old, word)| word == old);
    if let Some((old, new)) = COMMANDS.iter().find(|(old, _)| begins(old)) {
        return Some(format!("`bursar {}` is now `{new}`", old.join(" ")));
    }
    let own: Vec<_> = words.iter().take_while(|word| *word != "--").map(|word| word.to_string_lossy()).collect();
    let has = |option: &str| own.iter().any(|word| word.split('=').next() == Some(option));
    let (command, option, new) = OPTIONS.iter().find(|(command, option, _)| begins(&[*command]) && has(option))?;
    Some(format!("`bursar {command} {option}` is now `{new}`"))
}
