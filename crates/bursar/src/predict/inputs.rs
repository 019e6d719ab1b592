//! What is known of a command's input before it starts. Records keep it among the options of their header.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use ::predict::INPUT_BYTES;

use super::kind::Kind;

/// The number of files named in the arguments and of standard input. [`INPUT_BYTES`] is their total size.
pub const FILES: &str = "input_files";

/// For a record's header, of a command that is about to start in this folder. Empty where it names no file.
pub fn options(command: &[OsString]) -> BTreeMap<String, String> {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let kind = std::env::current_dir().ok().and_then(|folder| Kind::of(&words, &folder));
    let found = kind.map(|kind| sizes(&kind, true)).unwrap_or_default();
    found.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Size and number of the files that are there. Empty if there is none.
pub fn sizes(kind: &Kind, with_standard_input: bool) -> BTreeMap<&'static str, u64> {
    let named = kind.files.iter().filter_map(|path| size(path));
    let given = with_standard_input.then(|| size(Path::new("/proc/self/fd/0"))).flatten();
    let sizes: Vec<u64> = named.chain(given).collect();
    if sizes.is_empty() {
        return BTreeMap::new();
    }
    BTreeMap::from([(INPUT_BYTES, sizes.iter().sum()), (FILES, sizes.len() as u64)])
}

fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| found.len())
}
