//! `bursar advise`: huge pages and eager memory where their benefit exceeds their cost.

mod attach;
mod check;
mod convert;
mod costs;
mod profile;
mod run;
mod ways;

use session::status::Status;

use crate::cli::advise::Advise;

pub fn advise(action: Advise) -> anyhow::Result<Status> {
    match action {
        Advise::Try(options) => ways::compare(options),
        Advise::Run(options) => run::run(options),
        Advise::Profile(options) => profile::profile(&options),
        Advise::Attach(options) => attach::attach(&options),
        Advise::Check { profile } => check::check(&profile),
        Advise::Costs(options) => costs::print(&options),
        Advise::Convert(options) => convert::convert(&options),
    }
}
