//! bursar: how much memory a program needs on Linux, what each further byte buys, and what guessing would have cost.
//!
//! This crate parses, wires and prints; what it wires stands in the crates beside it, in the order of the way of the data.

mod advise;
mod attribute;
mod balance;
mod budget;
mod check;
mod cli;
mod curve;
mod diff;
mod doctor;
mod export;
mod faults;
mod pool;
mod predict;
mod provision;
mod recommend;
mod replay;
mod report;
mod results;
mod run;
mod serve;
mod watch;

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use session::say::{self, tell};
use session::status::{OWN_FAILURE, Status};
use session::{nodes, redact};

use cli::advise::Advise;
use cli::curve::Curve;
use cli::pool::Pool;
use cli::slurm::Slurm;
use cli::{Action, Cli, Results};

fn main() {
    linux::limits::raise();
    linux::file_size::limit_is_an_error();
    linux::signals::children_are_kept();
    if let Err(error) = linux::children::reap_as_init() {
        tell!("bursar: orphans are not reaped: {error}");
    }
    let words: Vec<_> = std::env::args_os().collect();
    let status = match cli::tip::parse(&words) {
        Ok(cli) => act(cli.action).unwrap_or_else(|error| {
            tell!("bursar: {}", sentence(&error));
            Status::of_error(&error)
        }),
        Err(error) => {
            match error.use_stderr() {
                // Its arguments may be names that a shell's pattern found.
                true => say::beside(format_args!("{}", error.render())),
                false => drop(error.print()),
            }
            // Asked for help is no failure; a wrong argument is ours, not the command's.
            Status::of(if error.use_stderr() { OWN_FAILURE } else { 0 })
        }
    };
    status.end()
}

/// With its causes, each told once: some errors name theirs.
fn sentence(error: &anyhow::Error) -> String {
    let is_refused = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    // The only calls of bursar that wait for nothing and are refused so start a process or a thread.
    let refused = error.chain().any(is_refused).then(linux::limits::processes);
    let causes = error.chain().skip(1).map(ToString::to_string).chain(refused);
    causes.fold(error.to_string(), |said, cause| if said.contains(&cause) { said } else { format!("{said}: {cause}") })
}

fn results_of(action: &Action) -> Option<&Results> {
    match action {
        Action::Run(options) => Some(&options.results),
        Action::Budget(options) => Some(&options.results),
        Action::Attribute(options) => Some(&options.results),
        Action::Faults(options) => Some(&options.results),
        Action::Report(options) => Some(&options.results),
        _ => None,
    }
}

fn only_prints(action: &Action) -> bool {
    match action {
        Action::Report(_)
        | Action::Diff(_)
        | Action::Curve(_)
        | Action::Doctor(_)
        | Action::Recommend(_)
        | Action::Predict(_) => true,
        Action::Check(options) => options.from.is_some(),
        Action::Man { .. } | Action::Completions { .. } => true,
        Action::Advise(action) => {
            !matches!(action, Advise::Try(_) | Advise::Run(_) | Advise::Attach(_) | Advise::Profile(_))
        }
        Action::Pool(action) => matches!(action, Pool::Status { .. }),
        _ => false,
    }
}

fn act(action: Action) -> anyhow::Result<Status> {
    if only_prints(&action) {
        linux::broken_pipe::ends_this_process();
    } else if let Some(shortage) = linux::limits::shortage() {
        anyhow::bail!(shortage);
    } else if !linux::procfs::is_mounted() {
        anyhow::bail!(
            "/proc, which bursar needs, is not mounted here; with the right to mount: mount -t proc proc /proc"
        );
    }
    if let Some(results) = results_of(&action) {
        redact::set(&results.redact);
        if !only_prints(&action) {
            results::check(results)?;
        }
    }
    if let Action::Check(options) = &action {
        redact::set(&options.redact);
    }
    match action {
        Action::Run(options) => match &options.target {
            Some(target) => run::attach(&options, target),
            None => run::run(options),
        },
        Action::Budget(options) => budget::budget(options),
        Action::Predict(options) => predict::predict(options),
        Action::Check(options) => check::check(&options),
        Action::Diff(options) => diff::diff(&options),
        Action::Watch(options) => watch::watch(options),
        Action::Balance(options) => balance::balance(&options),
        Action::Attribute(options) => attribute::attribute(options),
        Action::Faults(options) => faults::faults(&options),
        Action::Serve(options) => serve::serve(&options),
        Action::Provision(options) => provision::provision(options),
        Action::Pool(options) => pool::pool(&options),
        Action::Advise(action) => advise::advise(action),
        Action::Report(options) => report::report(&options),
        Action::Curve(Curve::Trace(options)) => curve::trace(&options),
        Action::Recommend(options) => recommend::recommend(options),
        Action::Slurm(Slurm::Step) => Ok(session::slurm::step()),
        Action::Node(options) => nodes::node(&options.meeting, &options.command),
        Action::Doctor(options) => doctor::doctor(&options),
        Action::Man { folder } => {
            let mut command = Cli::command().disable_help_subcommand(true);
            command.build();
            man(&command, &folder)?;
            Ok(Status::of(0))
        }
        Action::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "bursar", &mut script);
            say::result(format_args!("{}", String::from_utf8_lossy(&script)))?;
            Ok(Status::of(0))
        }
    }
}

/// Writes the page of a command, and of each beneath it, into a folder.
fn man(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    std::fs::write(&path, text).with_context(|| format!("cannot write the man page {}", path.display()))?;
    command.get_subcommands().filter(|page| !page.is_hide_set()).try_for_each(|page| man(page, folder))
}
