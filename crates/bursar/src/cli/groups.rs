//! The help of `bursar` itself: its commands by task.

use std::fmt::Write;

use clap::builder::{StyledStr, Styles};
use clap::{Command, Subcommand};

use super::Action;

/// Every command that is not hidden, once.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "watch", "attribute", "faults"]),
    ("Size", &["budget", "predict", "check", "recommend"]),
    ("Provide", &["provision", "pool", "advise", "balance"]),
    ("Look again", &["report", "diff", "curve"]),
    ("Machine", &["serve", "doctor"]),
];

/// clap's template of `--help`, with a heading for each group of commands, which clap has only for options.
pub fn template() -> StyledStr {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let commands = Action::augment_subcommands(Command::new("bursar"));
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut template = StyledStr::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(template, "\n{header}{heading}:{header:#}");
        for command in names.iter().filter_map(|name| commands.find_subcommand(name)) {
            let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
            let _ = writeln!(template, "  {literal}{:width$}{literal:#}  {about}", command.get_name());
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    template
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn the_list_of_commands_fits_80_columns() {
        let help = Cli::command().render_help().to_string();
        for (heading, names) in GROUPS {
            assert!(help.contains(&format!("\n{heading}:\n  {}", names[0])), "{help}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
