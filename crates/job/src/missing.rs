//! Why an exec finds no file although the command is there.

use std::env;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The kernel reads so much of a script's first line (`BINPRM_BUF_SIZE`).
const FIRST_LINE_BYTES: usize = 256;
/// Program headers, and the loader's path, are near the beginning of a program.
const HEAD_BYTES: u64 = 1 << 16;
/// The type of the program header that names the loader.
const PT_INTERP: u64 = 3;
/// Where execvp looks without `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The interpreter of a script, or the loader of a program, where the command names one that does not exist.
pub fn interpreter(command: &str) -> Option<String> {
    let path = find(command)?;
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let named = of_script(&head).or_else(|| of_program(&head))?;
    (!Path::new(std::ffi::OsStr::from_bytes(named)).exists()).then(|| String::from_utf8_lossy(named).into_owned())
}

/// Whether no folder of `PATH` that can be entered has such a command. Where another cannot be entered, execvp says that it was refused.
pub fn is_nowhere(command: &str) -> bool {
    !command.contains('/') && find(command).is_none()
}

/// The file that execvp executes.
fn find(command: &str) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(command.into()).filter(|path: &PathBuf| path.is_file());
    }
    let path = env::var_os("PATH").unwrap_or(DEFAULT_PATH.into());
    env::split_paths(&path).map(|folder| folder.join(command)).find(|path| path.is_file())
}

fn of_script(head: &[u8]) -> Option<&[u8]> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.get(..FIRST_LINE_BYTES).unwrap_or(line).split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    line.split(|byte| b" \t\r".contains(byte)).next().filter(|path| !path.is_empty())
}

/// Of an ELF file for a little-endian machine, of 64 or 32 bits.
fn of_program(head: &[u8]) -> Option<&[u8]> {
    let class = *head.strip_prefix(b"\x7fELF")?.first()?;
    let number = |at: usize, bytes: usize| {
        let field = head.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    // Offsets in the header: of the table, of an entry's size, of the number of entries; in an entry: of offset and size.
    let (word, table, entry, count, offset, length) =
        if class == 2 { (8, 32, 54, 56, 8, 32) } else { (4, 28, 42, 44, 4, 16) };
    let (table, entry) = (number(table, word)? as usize, number(entry, 2)? as usize);
    let headers = (0..number(count, 2)? as usize).map(|index| table.saturating_add(index * entry));
    let header = headers.into_iter().find(|header| number(*header, 4) == Some(PT_INTERP))?;
    let begin = number(header.checked_add(offset)?, word)? as usize;
    let path = head.get(begin..begin.checked_add(number(header.checked_add(length)?, word)? as usize)?)?;
    path.split(|byte| *byte == 0).next().filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_nowhere_if_no_folder_has_it() {
        assert!(is_nowhere("no-such-command") && !is_nowhere("sh") && !is_nowhere("/no/such/command"));
    }

    #[test]
    fn a_script_names_its_interpreter_in_its_first_line() {
        let of = |text: &str| of_script(text.as_bytes()).map(|path| String::from_utf8_lossy(path).into_owned());
        assert_eq!(of("#!/no/such\nrest").as_deref(), Some("/no/such"));
        assert_eq!(of("#! /usr/bin/env python3\n").as_deref(), Some("/usr/bin/env"));
        assert_eq!(of("#!/bin/sh\r\n").as_deref(), Some("/bin/sh"));
        assert_eq!(of("#!\n"), None);
        assert_eq!(of("echo"), None);
    }

    #[test]
    fn a_program_names_its_loader_and_a_damaged_one_names_nothing() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let loader = of_program(&program).map(|path| String::from_utf8_lossy(path).into_owned()).unwrap();
        assert!(loader.starts_with('/') && Path::new(&loader).exists(), "{loader}");
        for length in 0..64 {
            assert_eq!(of_program(&program[..length]), None);
        }
        let mut damaged = program[..1 << 12].to_vec();
        damaged[32..64].fill(0xff);
        assert_eq!(of_program(&damaged), None);
    }
}
