//! A virtual machine of QEMU: its guest's memory, seen through the balloon's statistics, and its size, changed through the balloon.

mod guest;
mod machine;
mod qmp;

pub use machine::{Machine, put_back};
