//! The command line of `bursar serve`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::ADVANCED;
use super::values::{address, duration};

/// `bursar serve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bursar serve\n  \
    bursar serve 'system.slice/*.service' /sys/fs/cgroup/user.slice\n  \
    curl http://127.0.0.1:19676/metrics\n\n\
    Changes nothing, and needs no root. SIGTERM and Ctrl-C end it.")]
pub struct Serve {
    /// Cgroups by path or pattern [default: units, pods, containers, jobs and steps, and other cgroups without children]
    #[arg(value_name = "CGROUP")]
    pub cgroups: Vec<String>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, default_value = "127.0.0.1:19676")]
    pub listen: SocketAddr,
    /// Time between scans
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s", hide_short_help = true, help_heading = ADVANCED)]
    pub interval: Duration,
    /// Watch at most this many cgroups; the others are only counted
    #[arg(long, value_name = "NUMBER", default_value = "1000", hide_short_help = true, help_heading = ADVANCED)]
    pub max_cgroups: usize,
}
