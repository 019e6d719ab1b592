//! What is said to people, by `tell!` on standard error and by `show!` on standard output. A terminal that was closed or a full
//! disk must not end what follows a command, nor change the status it ends with; `println!` and `tell!` panic there.

use std::fmt::Arguments;
use std::io::Write;

use anyhow::Context;
use model::printable_lines;

/// Standard error, for what comes beside a result: where nobody can be told, it goes on. Takes whole lines.
pub struct Beside;

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = std::io::stderr().write_all(printable_lines(&String::from_utf8_lossy(bytes)).as_bytes());
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
    page_result(&printable_lines(&what.to_string()))
}

/// A rendered page, whose only escape sequences are colours, on standard error.
pub fn page(page: &str) {
    let _ = std::io::stderr().write_all(page.as_bytes());
}

/// A rendered page, whose only escape sequences are colours, on standard output.
pub fn page_result(page: &str) -> anyhow::Result<()> {
    let out = linux::standard_output::open();
    out.and_then(|mut out| out.write_all(page.as_bytes())).context("standard output cannot be written")
}

/// Standard output for lines that are told as they come about, free of what could steer a terminal. Takes whole lines.
pub struct Lines(std::io::Stdout);

impl Lines {
    /// # Errors
    /// Standard output is closed.
    pub fn open() -> anyhow::Result<Lines> {
        linux::standard_output::open().map(Lines).context("standard output cannot be written")
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(printable_lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A line on standard error.
#[macro_export]
macro_rules! tell {
    ($($what:tt)*) => { $crate::say::beside(format_args!("{}\n", format_args!($($what)*))) };
}

/// A line on standard output, as a result.
#[macro_export]
macro_rules! show {
    () => { $crate::say::result(format_args!("\n")) };
    ($($what:tt)*) => { $crate::say::result(format_args!("{}\n", format_args!($($what)*))) };
}

pub use crate::{show, tell};
