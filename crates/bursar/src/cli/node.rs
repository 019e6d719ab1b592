//! The command line of `bursar node`, which no person types.

use std::ffi::OsString;

use clap::Args;

use session::nodes::Meeting;

/// `bursar node`
#[derive(Debug, Args)]
pub struct Node {
    /// Where to tell of it
    pub meeting: Meeting,
    /// What to start
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
