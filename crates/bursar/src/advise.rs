//! `bursar advise`: huge pages and eager memory where their benefit exceeds their cost.

mod attach;
mod check;
mod convert;
mod costs;
pub mod explain;
mod kept;
mod profile;
mod run;
mod ways;

use session::status::Status;

use crate::cli::advise::Advise;

/// What looking at another process's memory takes, as the end of a sentence.
const NEEDS: &str = "needs CAP_SYS_NICE, CAP_SYS_PTRACE, CAP_BPF and CAP_PERFMON";

pub fn advise(action: &Advise) -> anyhow::Result<Status> {
    match action {
        Advise::Try(options) => ways::compare(options),
        Advise::Run(options) => run::run(options),
        Advise::Profile(options) => profile::profile(options),
        Advise::Attach(options) => attach::attach(options),
        Advise::Check { profile } => check::check(profile),
        Advise::Costs(options) => costs::print(options),
        Advise::Convert(options) => convert::convert(options),
    }
}
