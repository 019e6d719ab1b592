//! What is known of a command's input before it starts. Records keep it among the options of their header.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::INPUT_BYTES;

use crate::build_id::build_id;
use crate::kind::Kind;

/// The number of files named in the arguments and of standard input. [`INPUT_BYTES`] is their total size.
pub const FILES: &str = "input_files";

/// Before the name of a number that is known of the environment, or that the user named.
pub const NAMED: &str = "feature:";
/// Which build of the program it was.
pub const BUILD: &str = "build_id";
/// Names of standard input.
const STANDARD_INPUT: [&str; 3] = ["/proc/self/fd/0", "/dev/fd/0", "/dev/stdin"];
/// Numbers of the environment that are features unasked.
const ENVIRONMENT: [&str; 1] = ["OMP_NUM_THREADS"];

/// For a record's header, of a command that is about to start in this folder: the size of its input, its build, and numbers of the
/// environment with those that the user `named`. What is not known is left out.
pub fn options(command: &[OsString], named: &[(String, f64)]) -> BTreeMap<String, String> {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let folder = std::env::current_dir().ok();
    let kind = folder.as_ref().and_then(|folder| Kind::of(&words, folder));
    let found = kind.as_ref().map(|kind| sizes(kind, true)).unwrap_or_default();
    let mut options: BTreeMap<String, String> =
        found.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let numbers = environment().into_iter().chain(named.iter().cloned());
    options.extend(numbers.map(|(name, value)| (format!("{NAMED}{name}"), value.to_string())));
    let build = kind.zip(folder).and_then(|(kind, folder)| build(&kind, &folder));
    options.extend(build.map(|build| (BUILD.to_string(), build)));
    options
}

/// Numbers of the environment that many programs heed.
pub fn environment() -> Vec<(String, f64)> {
    let number = |name: &&str| Some((name.to_string(), std::env::var(name).ok()?.trim().parse().ok()?));
    ENVIRONMENT.iter().filter_map(number).collect()
}

/// The build-id of the kind's program; `None` where an interpreter runs a script, or it is not found or has none.
pub fn build(kind: &Kind, folder: &Path) -> Option<String> {
    let program = kind.program.as_ref()?;
    let path = match program.contains('/') {
        true => folder.join(program),
        false => {
            let searched = std::env::var_os("PATH")?;
            std::env::split_paths(&searched).map(|in_path| in_path.join(program)).find(|path| path.is_file())?
        }
    };
    build_id(&path).ok().flatten()
}

/// Size and number of the files that are there, each counted once though a command names it twice. Empty if there is none. Standard input
/// is left out, also where the command names it, unless it is the command's.
pub fn sizes(kind: &Kind, with_standard_input: bool) -> BTreeMap<&'static str, u64> {
    let is_given = |path: &Path| STANDARD_INPUT.iter().any(|name| path == Path::new(name));
    let named = kind.files.iter().map(PathBuf::as_path).filter(|path| !is_given(path));
    let given = with_standard_input.then_some(Path::new(STANDARD_INPUT[0]));
    let files: BTreeMap<(u64, u64), u64> = named.chain(given).filter_map(file).collect();
    if files.is_empty() {
        return BTreeMap::new();
    }
    BTreeMap::from([(INPUT_BYTES, files.values().sum()), (FILES, files.len() as u64)])
}

/// Device and inode, and the size.
fn file(path: &Path) -> Option<((u64, u64), u64)> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(((found.dev(), found.ino()), found.len()))
}
