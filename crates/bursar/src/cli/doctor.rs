//! The command line of `bursar doctor`.

use clap::Args;

/// `bursar doctor`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar doctor\n  \
    sudo bursar doctor            what there is more with root\n  \
    sudo bursar doctor --repair   after bursar was killed\n\n\
    Without --repair nothing is changed.")]
pub struct Doctor {
    /// As JSON, on standard output
    #[arg(long)]
    pub json: bool,
    /// Undo what a killed run has left: cgroups, sysctls
    #[arg(long)]
    pub repair: bool,
    /// Remove the oldest records of the state folder (the newest BURSAR_KEEP_RECORDS, 200, within BURSAR_KEEP_MIB, 256, stay), and
    /// temporary files that a killed bursar left there more than a day ago
    #[arg(long)]
    pub prune: bool,
}
