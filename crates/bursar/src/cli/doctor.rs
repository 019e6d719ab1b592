//! The command line of `bursar doctor`.

use std::path::PathBuf;

use clap::Args;

use super::ADVANCED;

/// `bursar doctor`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar doctor                 what works here, and how well\n  \
    bursar doctor -v              and every source of each figure, with what would enable it\n  \
    sudo bursar doctor            what there is more with root\n  \
    sudo bursar doctor --repair   after bursar was killed\n\n\
    Without --repair nothing is changed but for a moment: a cgroup is made, limited and removed.")]
pub struct Doctor {
    /// Also print every source of each figure: whether it works, why not, and what would enable it
    #[arg(short, long)]
    pub verbose: bool,
    /// Write the findings as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Undo what a killed bursar has left behind: cgroups, sysctls, limits, and pools whose broker was killed
    #[arg(long)]
    pub repair: bool,
    /// Remove the oldest records of the state folder (the newest BURSAR_KEEP_RECORDS, 200, within BURSAR_KEEP_MIB, 256, stay), and
    /// temporary files that a killed bursar left there more than a day ago
    #[arg(long, hide_short_help = true, help_heading = ADVANCED)]
    pub prune: bool,
}
