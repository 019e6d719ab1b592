//! Old names of commands and options, which are answered with the new ones.

use std::ffi::OsString;

/// Words that a command line began with, and what stands in their place now.
const RENAMED: [(&[&str], &str); 2] = [(&["slurm", "recommend"], "bursar recommend"), (&["slurm"], "bursar recommend")];

/// The sentence that answers a command line of an old name.
pub fn sentence(words: &[OsString]) -> Option<String> {
    let words = words.get(1..).unwrap_or_default();
    let (old, new) = RENAMED
        .iter()
        .find(|(old, _)| words.len() >= old.len() && old.iter().zip(words).all(|(old, word)| word == old))?;
    Some(format!("`bursar {}` is now `{new}`", old.join(" ")))
}
