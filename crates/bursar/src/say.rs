//! What is said to people, by `tell!` on standard error and by `show!` on standard output. A terminal that was closed or a full
//! disk must not end what follows a command, nor change the status it ends with; `println!` and `tell!` panic there.

use std::fmt::Arguments;
use std::io::Write;

use anyhow::Context;

/// Standard error, for what comes beside a result: where nobody can be told, it goes on.
pub struct Beside;

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = std::io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// In one piece: others may write there, too.
pub fn beside(what: Arguments) {
    let _ = Beside.write_all(what.to_string().as_bytes());
}

/// What was asked for. Fails where it cannot be had.
pub fn result(what: Arguments) -> anyhow::Result<()> {
    let out = linux::standard_output::open();
    out.and_then(|mut out| out.write_fmt(what)).context("standard output cannot be written")
}

/// A line on standard error.
macro_rules! tell {
    ($($what:tt)*) => { $crate::say::beside(format_args!("{}\n", format_args!($($what)*))) };
}

/// A line on standard output, as a result.
macro_rules! show {
    () => { $crate::say::result(format_args!("\n")) };
    ($($what:tt)*) => { $crate::say::result(format_args!("{}\n", format_args!($($what)*))) };
}

pub(crate) use {show, tell};
