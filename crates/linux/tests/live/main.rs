//! Tests on the running kernel. Those that need root or a cgroup print so when they cannot run; with `BURSAR_NO_SKIP=1` they fail instead.

mod cgroup;
mod journal;
mod support;
mod taskstats;
