//! The command line of `bursar node`, which no person types.

use std::ffi::OsString;

use clap::Args;

use session::nodes::Meeting;

/// `bursar node`
#[derive(Debug, Args)]
pub struct Node {
    /// Address to report to
    pub meeting: Meeting,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
