//! Writing to a pipe without a reader.

/// Lets SIGPIPE end this process silently, as in other programs: Rust ignores it, and `println!` panics. Only for programs that just print;
/// a process that runs a command must not end before the command.
pub fn ends_this_process() {
    // SAFETY: installs no handler, only the default action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
