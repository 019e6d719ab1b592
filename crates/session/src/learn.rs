//! `bursar predict --learn`: runs the command on other inputs, so that its need can be predicted.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use linux::temporary::TemporaryFolder;
use model::Bytes;

use crate::say::tell;
use history::kind::Kind;

/// The number that `--scale-with` is first tried with: the size of its output shows how many bytes one more adds.
const TRIED: u64 = 1000;

/// Inputs that the command is run on.
pub enum Inputs<'a> {
    /// Files.
    Named(&'a [PathBuf]),
    /// What a shell command prints, in which `{}` is a number that the size is in proportion to.
    Made {
        /// The command.
        with: &'a str,
        /// Sizes of the inputs to make.
        bytes: &'a [u64],
    },
}

/// Runs the command once on each input, each run with a record of its own.
///
/// # Errors
/// If the command names no input, or several, or a run fails.
pub fn learn(command: &[OsString], inputs: &Inputs) -> anyhow::Result<()> {
    let input = input(command)?;
    match inputs {
        Inputs::Named(paths) => paths.iter().try_for_each(|path| run(command, &input, path)),
        Inputs::Made { with, bytes } => {
            let made = TemporaryFolder::create("bursar-learn-").context("no folder for the inputs could be made")?;
            let name = Path::new(&input).file_name().unwrap_or(&input);
            let path = made.path().join(name);
            let size = make(with, TRIED, &path)?;
            ensure!(size > 0, "--scale-with '{with}' prints nothing for {TRIED}");
            for &wanted in *bytes {
                let number = (wanted as f64 * TRIED as f64 / size as f64).ceil() as u64;
                make(with, number.max(1), &path)?;
                run(command, &input, &path)?;
            }
            Ok(())
        }
    }
}

/// The word of the command that names its only input.
fn input(command: &[OsString]) -> anyhow::Result<OsString> {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let folder = std::env::current_dir().context("the current folder is unknown")?;
    let kind = Kind::of(&words, &folder).context("the command has no program")?;
    let is_input = |word: &&OsString| {
        let path = folder.join(word);
        path.is_file() && kind.files.contains(&path)
    };
    let mut words: Vec<&OsString> = command.iter().skip(1).filter(is_input).collect();
    words.sort_unstable();
    words.dedup();
    match words[..] {
        [word] => Ok(word.clone()),
        [] => bail!("--learn puts other inputs in the place of the command's own, and it names no file that is here"),
        _ => bail!(
            "--learn puts other inputs in the place of the command's own, and it names {} files that are here",
            words.len()
        ),
    }
}

fn make(with: &str, number: u64, path: &Path) -> anyhow::Result<u64> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let script = with.replace("{}", &number.to_string());
    let mut shell = Command::new("sh");
    let ended = linux::children::status(shell.arg("-c").arg(&script).stdin(Stdio::null()).stdout(file));
    let ended = ended.context("sh could not be run for --scale-with")?;
    ensure!(ended.success(), "--scale-with '{script}' failed ({ended})");
    Ok(fs::metadata(path)?.len())
}

fn run(command: &[OsString], input: &OsString, instead: &Path) -> anyhow::Result<()> {
    let size = fs::metadata(instead).with_context(|| format!("cannot read {}", instead.display()))?.len();
    tell!("bursar: running with {} of {}", instead.display(), Bytes(size));
    let own = std::env::current_exe().context("bursar's own file is unknown")?;
    let words = command.iter().map(|word| if word == input { instead.as_os_str() } else { word.as_os_str() });
    let mut run = Command::new(own);
    run.args(["run", "-q", "--"]).args(words).stdin(Stdio::null()).stdout(Stdio::null());
    let ended = linux::children::status(&mut run).context("bursar run could not be started")?;
    ensure!(ended.success(), "the command failed with {} ({ended})", instead.display());
    Ok(())
}
