//! The kernel's memory interfaces, typed.
//!
//! Only this crate reads and writes kernel files and makes system calls of this kind. A figure that a kernel lacks is `None`, never 0.
//! Every write that outlives a call goes through the [`journal`], so that it is undone at the end of the run, or by the next start or
//! `bursar doctor --repair` if bursar was killed.
#![allow(unsafe_code)]

pub mod addresses;
pub mod becoming_root;
pub mod bpf;
pub mod broken_pipe;
mod btf;
pub mod buddyinfo;
pub mod buffers;
pub mod cache;
pub mod calibrate;
mod capability;
pub mod cgroup;
pub mod children;
mod container;
pub mod core_cache;
pub mod cpu_clock;
pub mod damon;
pub mod dax;
pub mod delayacct;
pub mod endings;
pub mod environment;
mod error;
pub mod faults;
mod file;
pub mod file_size;
pub mod holders;
pub mod hugetlb;
pub mod idle;
pub mod journal;
pub mod limits;
pub mod mounts;
pub mod names;
mod netlink;
pub mod numa;
pub mod open_in_memory;
pub mod own_numbers;
pub mod pages;
mod patience;
pub mod perf;
pub mod place;
pub mod pools;
pub mod probe;
pub mod procfs;
pub mod psi;
pub mod rights;
pub mod scheduling;
pub mod secure_file;
pub mod shared_memory;
pub mod shared_words;
pub mod signals;
mod socket_memory;
pub mod standard_output;
mod systemd;
pub mod taskstats;
pub mod temporary;
pub mod thp;
pub mod wait;
pub mod written_in_memory;

pub use error::Error;
