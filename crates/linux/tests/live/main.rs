//! Tests on the running kernel. Those that need root or a cgroup say so when they cannot run, and fail instead where
//! `BURSAR_NO_SKIP=1` promises that they can.

mod cgroup;
mod journal;
mod support;
mod taskstats;
