//! The standard input of a search: each run gets the same.
//!
//! A regular file is opened anew for each run, at the offset it was given at. What comes through a pipe is spooled to a file
//! first, and fed to each run through a pipe of its own: a program may do otherwise with a file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use job::Forwarding;
use linux::environment;
use model::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::say::tell;
use crate::status::Interrupted;
use history::input::refuse_named_pipe;
use history::state::state_folder;

/// What is spooled of a pipe, at most.
const MOST_SPOOLED_BYTES: u64 = 1 << 30;
/// A pipe from which nothing comes for so long is nobody's input.
const SILENCE: Duration = Duration::from_secs(60);
/// How long it may be waited for without a word.
const PATIENCE: Duration = Duration::from_secs(2);
const TICK_MS: i64 = 100;

/// Numbers of `/dev/null`.
const NULL_DEVICE: (u32, u32) = (1, 3);

/// The input of each run.
pub enum Given {
    /// None: `/dev/null`.
    Nothing,
    /// A regular file from an offset on.
    File {
        /// Opened once; each run opens it again.
        file: File,
        /// Where each run begins to read.
        offset: u64,
        /// Its path, if it has one.
        path: Option<PathBuf>,
    },
    /// What came through a pipe.
    Spooled {
        /// A temporary file that holds all of it.
        file: File,
        /// Its length.
        bytes: u64,
        /// FNV-1a of it.
        hash: u64,
    },
}

/// What a record keeps of the input, so that a search can go on with the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// [`Given::identity`]; `None`: there was none.
    pub identity: Option<String>,
    /// Of a regular file.
    pub path: Option<PathBuf>,
    /// Where each run begins to read.
    pub offset: u64,
}

impl Given {
    /// What bursar was given: `named` by `--input`, else its own standard input. `kept`: of the record that is resumed.
    pub fn find(named: Option<&Path>, kept: Option<&Kept>, signals: &Forwarding) -> anyhow::Result<Given> {
        let given = match (named, kept) {
            (Some(path), _) => Given::open_named(path, 0)?,
            (None, Some(Kept { identity: None, .. })) if !is_regular(&std::io::stdin())? => Given::Nothing,
            (None, Some(Kept { path: Some(path), offset, .. })) => Given::open_named(path, *offset)?,
            (None, _) => Given::standard(signals)?,
        };
        if let Some(kept) = kept.filter(|kept| kept.identity != given.identity()) {
            let was = kept.identity.as_deref().unwrap_or("none");
            let is = given.identity().unwrap_or_else(|| "none".into());
            bail!(
                "the standard input is not the one that this budget was begun with (then: {was}; now: {is}): give the \
                 same, or begin a new budget"
            );
        }
        Ok(given)
    }

    fn open_named(path: &Path, offset: u64) -> anyhow::Result<Given> {
        refuse_named_pipe(path)?;
        let file = File::open(path).with_context(|| format!("the input {} cannot be opened", path.display()))?;
        ensure!(
            file.metadata()?.is_file(),
            "the input {} is not a regular file, which could be read again for each run",
            path.display()
        );
        let path = path.canonicalize().ok();
        Ok(Given::File { file, offset, path })
    }

    fn standard(signals: &Forwarding) -> anyhow::Result<Given> {
        let stdin = std::io::stdin();
        let what = rustix::fs::fstat(&stdin)?;
        let kind = FileType::from_raw_mode(what.st_mode);
        let device = (rustix::fs::major(what.st_rdev), rustix::fs::minor(what.st_rdev));
        match kind {
            FileType::RegularFile => {
                let offset = rustix::fs::seek(&stdin, rustix::fs::SeekFrom::Current(0))?;
                let file = File::open("/proc/self/fd/0").context(
                    "standard input cannot be opened again for each run: name the file with --input FILE, or give \
                     the command none with < /dev/null",
                )?;
                let path = std::fs::read_link("/proc/self/fd/0").ok();
                let is_it = |path: &PathBuf| path.metadata().is_ok_and(|found| found.ino() == what.st_ino);
                Ok(Given::File { file, offset, path: path.filter(is_it) })
            }
            FileType::Fifo => spool(duplicate(&stdin)?, signals),
            FileType::CharacterDevice if device == NULL_DEVICE || rustix::termios::isatty(&stdin) => Ok(Given::Nothing),
            _ => bail!(
                "standard input has no end that is known, so it cannot be given to each run: write it to a file and \
                 name that with --input FILE, or give the command none with < /dev/null"
            ),
        }
    }

    /// For one run; `None`: it has none.
    pub(crate) fn for_a_run(&self) -> anyhow::Result<Option<File>> {
        match self {
            Given::Nothing => Ok(None),
            Given::File { file, offset, .. } => {
                let mut opened = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
                    .context("the standard input cannot be opened again")?;
                opened.seek(SeekFrom::Start(*offset))?;
                Ok(Some(opened))
            }
            Given::Spooled { file, bytes, .. } => {
                let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).context("no pipe can be made")?;
                let (file, bytes, mut writer) = (file.try_clone()?, *bytes, File::from(writer));
                std::thread::Builder::new().name("bursar-input".into()).spawn(move || {
                    let mut block = vec![0; 64 << 10];
                    let mut at = 0;
                    while at < bytes {
                        let Ok(read @ 1..) = file.read_at(&mut block, at) else { break };
                        // A command that reads no more has ended, or has closed it.
                        if writer.write_all(&block[..read]).is_err() {
                            break;
                        }
                        at += read as u64;
                    }
                })?;
                Ok(Some(File::from(reader)))
            }
        }
    }

    /// The file that a run reads and that can be evicted before.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Given::File { path, .. } => path.as_deref(),
            _ => None,
        }
    }

    /// What it is, so that the same can be told from another.
    pub fn identity(&self) -> Option<String> {
        match self {
            Given::Nothing => None,
            Given::File { file, offset, path } => {
                let facts = file.metadata().ok()?;
                let name = path.as_ref().map_or("a file".into(), |path| path.display().to_string());
                let (size, mtime) = (facts.len(), facts.mtime());
                Some(format!("{name} from byte {offset}, {size} bytes, changed at {mtime}.{:09}", facts.mtime_nsec()))
            }
            Given::Spooled { bytes, hash, .. } => Some(format!("a pipe, {bytes} bytes, hash {hash:016x}")),
        }
    }

    /// What the record is to keep.
    pub fn kept(&self) -> Kept {
        let offset = match self {
            Given::File { offset, .. } => *offset,
            _ => 0,
        };
        Kept { identity: self.identity(), path: self.path().map(Path::to_path_buf), offset }
    }
}

fn is_regular(stdin: &std::io::Stdin) -> anyhow::Result<bool> {
    let what = rustix::fs::fstat(stdin)?;
    let is_file = FileType::from_raw_mode(what.st_mode) == FileType::RegularFile;
    Ok(is_file && what.st_size > 0)
}

fn duplicate(stdin: &std::io::Stdin) -> std::io::Result<File> {
    Ok(File::from(rustix::io::fcntl_dupfd_cloexec(stdin, 3)?))
}

/// Reads a pipe to its end.
fn spool(mut pipe: File, signals: &Forwarding) -> anyhow::Result<Given> {
    const ASIDE: &str = "write it to a file and name that with --input FILE, or give the command none with < /dev/null";
    let folder = state_folder().unwrap_or_else(|_| environment::temporary());
    let mut file = tempfile::tempfile_in(&folder)
        .with_context(|| format!("standard input cannot be kept in {}: {ASIDE}", folder.display()))?;
    let begun = Instant::now();
    let (mut bytes, mut hash, mut is_said) = (0u64, FNV_BASIS, false);
    let mut block = vec![0; 64 << 10];
    loop {
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK_MS * 1_000_000 };
        let ready = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&timeout));
        if let Some(signal) = signals.stopped_by() {
            return Err(Interrupted { signal, what: "standard input was read" }.into());
        }
        if matches!(ready, Ok(0) | Err(_)) {
            if begun.elapsed() > PATIENCE && !is_said {
                tell!("bursar: standard input is read to its end first, for each run gets it (none: < /dev/null)");
                is_said = true;
            }
            ensure!(
                bytes > 0 || begun.elapsed() < SILENCE,
                "nothing came through the pipe that is standard input for {} s: {ASIDE}",
                SILENCE.as_secs()
            );
            continue;
        }
        let read = pipe.read(&mut block).context("standard input cannot be read")?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        ensure!(
            bytes <= MOST_SPOOLED_BYTES,
            "more than {} comes through the pipe that is standard input, which is kept for each run: {ASIDE}",
            Bytes(MOST_SPOOLED_BYTES)
        );
        hash = fnv(hash, &block[..read]);
        file.write_all(&block[..read])
            .with_context(|| format!("standard input cannot be kept in {}: {ASIDE}", folder.display()))?;
    }
    // Nothing that is yet to be written disturbs the runs.
    file.sync_data().context("standard input cannot be kept")?;
    Ok(if bytes == 0 { Given::Nothing } else { Given::Spooled { file, bytes, hash } })
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &Given) -> String {
        std::io::read_to_string(given.for_a_run().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn each_run_reads_the_file_from_its_offset() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789").unwrap();
        let given = Given::open_named(file.path(), 4).unwrap();
        assert_eq!((read(&given), read(&given)), ("456789".into(), "456789".into()));
        let before = given.identity();
        std::fs::write(file.path(), "another").unwrap();
        assert_ne!(given.identity(), before);
    }

    #[test]
    fn each_run_reads_what_came_through_the_pipe() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let written = "word ".repeat(40_000);
        let to_write = written.clone();
        let writing = std::thread::spawn(move || File::from(writer).write_all(to_write.as_bytes()).unwrap());
        let signals = Forwarding::start().unwrap();
        let given = spool(File::from(reader), &signals).unwrap();
        writing.join().unwrap();
        assert!(read(&given) == written && read(&given) == written);
        assert!(given.identity().unwrap().contains("200000 bytes"));
        // One that reads nothing leaves no thread waiting.
        drop(given.for_a_run().unwrap());
    }

    #[test]
    fn a_folder_is_no_input() {
        assert!(Given::open_named(Path::new("/"), 0).is_err());
    }
}
