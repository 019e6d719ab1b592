//! What a record keeps of a search, so that it can go on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use model::RecordKind;
use record::Record;
use session::given::Kept;
use session::redact::{self, redacted};
use session::say::tell;

use crate::options::Options;

/// The options that a resumed search needs, as the record's header keeps them.
pub fn saved(options: &Options, input: &Kept) -> BTreeMap<String, String> {
    let mut saved = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| value.map(|value| saved.insert(name.to_string(), value));
    let flag = |set: bool| set.then(|| "yes".to_string());
    put("slowdown", Some(options.slowdown.to_string()));
    put("runs", options.runs.map(|runs| runs.to_string()));
    put("max_trials", Some(options.max_trials.to_string()));
    put("timeout_seconds", options.timeout.map(|t| t.as_secs_f64().to_string()));
    put("fast_tier", options.fast_tier.map(|tier| tier.to_string()));
    let prepare = options.prepare.as_deref().map(redacted);
    let lacks_words = prepare != options.prepare
        || options.command.iter().any(|word| redacted(&word.to_string_lossy()) != word.to_string_lossy());
    put(redact::OPTION, flag(lacks_words));
    put("prepare", prepare);
    put("input", input.identity.clone());
    put("input_path", input.path.as_ref().map(|path| path.to_string_lossy().into_owned()));
    put("input_offset", input.identity.is_some().then(|| input.offset.to_string()));
    put("no_compare", flag(!options.compare));
    put("full", flag(options.full));
    put("drop_caches", flag(options.drop_caches));
    put("as_found", flag(options.as_found));
    saved
}

/// The standard input that the record's runs had.
pub fn input(record: &Record) -> Kept {
    let get = |name: &str| record.header.options.get(name);
    Kept {
        identity: get("input").cloned(),
        path: get("input_path").map(Into::into),
        offset: get("input_offset").and_then(|offset| offset.parse().ok()).unwrap_or(0),
    }
}

/// Shows a person at the terminal what is about to be run: it is the record that says so, and not the command line.
pub fn show(options: &Options) {
    if std::io::stderr().is_terminal() {
        shown(&options.command, options.prepare.as_deref()).iter().for_each(|line| tell!("{line}"));
    }
}

/// Lines without control characters, which a terminal would obey.
fn shown(command: &[OsString], prepare: Option<&str>) -> Vec<String> {
    let words: Vec<String> = command.iter().map(|word| report::shell_word(&word.to_string_lossy())).collect();
    let prepare = prepare.map(|prepare| format!("bursar: and before each run: sh -c {}", report::shell_word(prepare)));
    std::iter::once(format!("bursar: the record's command, which is run now: {}", words.join(" ")))
        .chain(prepare)
        .collect()
}

/// The command and the options of the record that is to be resumed.
pub fn restored(options: Options, record: &Record) -> anyhow::Result<Options> {
    let header = &record.header;
    if header.kind != RecordKind::Budget || header.command.is_empty() {
        bail!("this record is not of a budget; only `bursar budget` can go on with its own");
    }
    let directory = std::env::current_dir().unwrap_or_default();
    if directory != Path::new(&header.directory) {
        bail!("this budget was begun in {}; go there to resume it", header.directory);
    }
    let get = |name: &str| header.options.get(name);
    if get(redact::OPTION).is_some() {
        bail!("the record's command was redacted (--redact), so that it cannot be run again; begin a new search");
    }
    let number = |name: &str| get(name).and_then(|value| value.parse::<f64>().ok());
    Ok(Options {
        slowdown: number("slowdown").unwrap_or(options.slowdown),
        runs: number("runs").map(|runs| runs as u32),
        max_trials: number("max_trials").map_or(options.max_trials, |trials| trials as u32),
        timeout: number("timeout_seconds").map(Duration::from_secs_f64),
        fast_tier: get("fast_tier").and_then(|tier| tier.parse().ok()),
        prepare: get("prepare").cloned(),
        compare: get("no_compare").is_none(),
        full: get("full").is_some(),
        drop_caches: get("drop_caches").is_some(),
        as_found: get("as_found").is_some(),
        command: header.command.iter().map(OsString::from).collect(),
        ..options
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_shown_without_what_a_terminal_obeys() {
        let lines = shown(&["sh".into(), "-c".into(), "evil\u{1b}[2J\n".into()], Some("rm x"));
        assert_eq!(lines[0], "bursar: the record's command, which is run now: sh -c $'evil\\x1b[2J\\n'");
        assert_eq!(lines[1], "bursar: and before each run: sh -c 'rm x'");
    }
}
