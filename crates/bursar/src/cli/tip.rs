//! The next step beside clap's error where a command to run was given without the `--` before it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error, Parser};

use super::{Cli, renamed};

/// Parses the words that bursar was started with, its own name first.
///
/// # Errors
/// That of clap, with a tip of our own where a word is probably the command to run.
pub fn parse(words: &[OsString]) -> Result<Cli, Error> {
    Cli::try_parse_from(words).map_err(|mut error| {
        if let Some(sentence) = renamed::sentence(words) {
            return Error::raw(ErrorKind::InvalidSubcommand, sentence + "\n");
        }
        // Clap's own tip for an unknown option, or for a value with a dash, makes it the command to run.
        if error.kind() == ErrorKind::UnknownArgument {
            error.remove(ContextKind::Suggested);
        }
        if let Some(tip) = tip(&error, words) {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        error
    })
}

fn tip(error: &Error, words: &[OsString]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    };
    let dashes = words.iter().position(|word| word == "--");
    match error.kind() {
        ErrorKind::UnknownArgument if dashes.is_none() => {
            let word = text(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
            if let Some(tip) = target(words, word) {
                return Some(tip);
            }
            let subcommand = running_subcommand(words)?;
            Some(format!("write -- before the command to run: {subcommand} [OPTIONS] -- {word}"))
        }
        // Before a later `--` stands a misspelt subcommand, for which clap has its own tip.
        ErrorKind::InvalidSubcommand if dashes.is_none_or(|at| at == 1) => {
            let word = text(ContextKind::InvalidSubcommand)?;
            Some(format!("to run a command, put a subcommand and -- before it: bursar run -- {word}"))
        }
        _ => None,
    }
}

/// The option that a process or a cgroup is named by, where a word is one.
fn target(words: &[OsString], word: &str) -> Option<String> {
    let option = match word.parse::<u32>() {
        Ok(_) => "--pid",
        Err(_) if word.starts_with("/sys/fs/cgroup") => "--cgroup",
        Err(_) => return None,
    };
    let command = subcommand(words).1;
    command.get_arguments().find(|argument| argument.get_long() == Some("pid"))?;
    Some(format!("write {option} before what runs already: {option} {word}"))
}

/// The subcommand that these words name, such as `bursar advise run`; `None`: it runs no command.
fn running_subcommand(words: &[OsString]) -> Option<String> {
    let (path, command) = subcommand(words);
    takes_command(&command).then(|| path.join(" "))
}

/// The subcommand that these words name, and it.
fn subcommand(words: &[OsString]) -> (Vec<String>, Command) {
    let mut command = Cli::command();
    let mut path = vec![command.get_name().to_string()];
    for word in words.iter().skip(1) {
        let Some(next) = command.find_subcommand(word).cloned() else { break };
        path.push(next.get_name().into());
        command = next;
    }
    (path, command)
}

fn takes_command(subcommand: &Command) -> bool {
    subcommand.get_positionals().any(clap::Arg::is_last_set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(line: &str) -> String {
        parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).unwrap_err().to_string()
    }

    #[test]
    fn names_the_dashes_that_are_missing_before_a_command() {
        let tip = "tip: write -- before the command to run: bursar";
        for (line, step) in [
            ("bursar run solvr input.dat", "run [OPTIONS] -- solvr"),
            ("bursar run --limit 1G solvr", "run [OPTIONS] -- solvr"),
            ("bursar advise run solvr", "advise run [OPTIONS] -- solvr"),
        ] {
            let error = error_of(line);
            assert!(error.contains(&format!("{tip} {step}\n")), "{error}");
        }
    }

    #[test]
    fn names_a_subcommand_where_only_a_command_was_given() {
        for line in ["bursar ./solver x", "bursar sort x", "bursar -- sort"] {
            let error = error_of(line);
            let word = if line.contains("sort") { "sort" } else { "./solver" };
            assert!(error.contains(&format!("-- before it: bursar run -- {word}\n")), "{error}");
        }
    }

    #[test]
    fn answers_an_old_name_with_the_new_one() {
        for (line, sentence) in [
            ("bursar slurm recommend --days 7", "error: `bursar slurm recommend` is now `bursar recommend`\n"),
            (
                "bursar export job.bursar -f csv",
                "error: `bursar export` is now `bursar report RECORD --format FORMAT -o FILE`\n",
            ),
            ("bursar merge a b", "error: `bursar merge` is now `bursar report RECORD…`\n"),
            ("bursar curve replay a", "error: `bursar curve replay` is now `bursar report --phases RECORD…`\n"),
            ("bursar advise explain a", "error: `bursar advise explain` is now `bursar report RECORD`\n"),
            ("bursar watch --replay a", "error: `bursar watch --replay` is now `bursar report --replay RECORD`\n"),
            ("bursar attribute -q --from=a", "error: `bursar attribute --from` is now `bursar report FOLDER…`\n"),
            (
                "bursar run --attach 7",
                "error: `bursar run --attach` is now `bursar run --pid PID` or `bursar run --cgroup PATH`\n",
            ),
            ("bursar slurm recomend", "error: `bursar slurm` is now `bursar recommend`\n"),
        ] {
            assert_eq!(error_of(line), sentence);
        }
        for line in ["bursar run -- slurm recommend", "bursar recommend", "bursar watch -- a --replay b"] {
            assert!(parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).is_ok(), "{line}");
        }
    }

    #[test]
    fn names_the_option_before_what_runs_already() {
        for (line, option) in [
            ("bursar watch --intrusive 4711", "--pid 4711"),
            ("bursar watch /sys/fs/cgroup/db", "--cgroup /sys/fs/cgroup/db"),
            ("bursar advise attach 4711", "--pid 4711"),
        ] {
            let error = error_of(line);
            assert!(error.contains(&format!("before what runs already: {option}\n")), "{error}");
        }
        for line in [
            "bursar watch --pid 1 --name db",
            "bursar run --pid 1 -- true",
            "bursar advise attach",
            "bursar run --tree -- a",
        ] {
            error_of(line);
        }
    }

    #[test]
    fn leaves_misspelt_words_to_clap() {
        for (line, similar) in [
            ("bursar budgett -- true", "a similar subcommand exists: 'budget'"),
            ("bursar run --limt 1G true", "a similar argument exists: '--limit'"),
        ] {
            let error = error_of(line);
            assert!(error.contains(similar) && !error.contains("command to run"), "{error}");
        }
        assert!(!error_of("bursar run --limit 1G 2G -- true").contains("tip:"));
        for line in ["bursar run --limit -5 -- true", "bursar faults --pid abc", "bursar run --limit -5"] {
            assert!(!error_of(line).contains("tip:"), "{line}: no value of an option is the command to run");
        }
        assert!(!error_of("bursar doctor two").contains("tip:"));
    }
}
