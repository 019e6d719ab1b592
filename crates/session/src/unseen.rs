//! Why the library was not in a command: what the command's file says.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, PT_INTERP, SHT_DYNSYM};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind, ReadCache};

use crate::launch::{Launcher, is_launcher};

/// The head of a program's file, in which all is that matters here.
const HEAD: u64 = 64 << 10;

/// What the library was to do in the command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Purpose {
    /// Tell who holds its memory.
    Attribute,
    /// Serve its memory from the pool.
    Provision,
    /// Advise the kernel on its huge pages.
    Advise,
    /// Note its references to files.
    References,
}

/// Why the library is kept out of a command: a sanitizer ends the program when anything was loaded before it.
pub fn sanitizer(command: &[OsString], launcher: Option<Launcher>, purpose: Purpose) -> Option<String> {
    // __asan_init, __tsan_init, __msan_init, __hwasan_init; looked for in one pass, before the command begins.
    let is_init = |name: &[u8]| {
        name.ends_with(b"san_init") && matches!(name.first_chunk(), Some(b"__a" | b"__t" | b"__m" | b"hwa"))
    };
    let to = match purpose {
        Purpose::Attribute => "attribute its memory",
        Purpose::Provision => "have it served",
        Purpose::Advise => "have it advised",
        Purpose::References => "see its references to files",
    };
    programs(command, launcher).find_map(|path| {
        // bursar has the library in it, and that knows these names.
        if path.file_name().is_some_and(|name| is_launcher(&name.to_string_lossy())) {
            return None;
        }
        names_it_is_linked_by(&path)?.windows("__asan_init".len()).any(is_init).then(|| {
            format!(
                "{} is built with a sanitizer, which keeps an account of memory of its own: it ran without the library; \
                 build it without -fsanitize to {to}.",
                path.display()
            )
        })
    })
}

/// Why a library that was to be in a command was not, in one sentence with what to do.
pub fn why(command: &[OsString], launcher: Option<Launcher>, is_interrupted: bool) -> String {
    obstacle(command, launcher, Purpose::Attribute).unwrap_or_else(|| {
        if is_interrupted {
            return "The command ended before any of its processes could report its memory.".into();
        }
        "The library was not loaded into the command: it, or a script that starts it, clears LD_PRELOAD or BURSAR_RUN \
         from the environment, or its node does not see the folder of the logs; put `bursar attribute --` directly \
         before the program."
            .into()
    })
}

/// What of the command's file keeps the library out; `None`: nothing.
pub fn obstacle(command: &[OsString], launcher: Option<Launcher>, purpose: Purpose) -> Option<String> {
    programs(command, launcher).find_map(|path| of_file(&path, purpose))
}

/// The command's program; of a launcher, every word that could be one.
fn programs(command: &[OsString], launcher: Option<Launcher>) -> impl Iterator<Item = PathBuf> {
    let words = if launcher.is_some() { command.get(1..) } else { command.get(..1) };
    words.unwrap_or_default().iter().filter_map(|name| find(name))
}

/// What keeps the library out of a program, or out of a script's interpreter.
fn of_file(path: &Path, purpose: Purpose) -> Option<String> {
    let program = executable(path)?;
    of_program(&program, &head(&program, HEAD)?, purpose)
}

/// The program that a file is run by: itself, or a script's interpreter.
fn executable(path: &Path) -> Option<PathBuf> {
    let start = head(path, HEAD)?;
    let Some(line) = start.strip_prefix(b"#!") else { return Some(path.into()) };
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    words.find(|word| !word.as_bytes().ends_with(b"/env")).and_then(find)
}

/// The program that the command runs: its own, or a script's interpreter.
pub fn program(command: &[OsString]) -> Option<PathBuf> {
    executable(&find(command.first()?)?)
}

/// The loader that a program names; `None`: it is statically linked, or no program.
pub fn loader(program: &Path) -> Option<String> {
    let head = head(program, HEAD)?;
    let header = FileHeader64::<Endianness>::parse(head.as_slice()).ok()?;
    let endian = header.endian().ok()?;
    let parts = header.program_headers(endian, head.as_slice()).ok()?;
    let loader = parts.iter().find(|part| part.p_type(endian) == PT_INTERP)?.data(endian, head.as_slice()).ok()?;
    Some(String::from_utf8_lossy(loader).trim_end_matches('\0').to_string())
}

/// Whether a program is linked with a library whose name has this in it.
pub fn is_linked_with(program: &Path, library: &str) -> bool {
    names_it_is_linked_by(program)
        .is_some_and(|names| names.windows(library.len()).any(|found| found == library.as_bytes()))
}

fn of_program(path: &Path, head: &[u8], purpose: Purpose) -> Option<String> {
    let name = path.display();
    let so = match purpose {
        Purpose::Attribute => "so its memory is not attributed",
        Purpose::Provision => "so it was not served",
        Purpose::Advise => "so nothing was advised in it",
        Purpose::References => "so its references to files are not seen",
    };
    if fs::metadata(path).ok()?.mode() & 0o6000 != 0 && !rustix::process::geteuid().is_root() {
        return Some(format!(
            "{name} is setuid or setgid: the loader takes no library of its caller into such a program, {so}; run it as its \
             owner."
        ));
    }
    match FileKind::parse(head).ok()? {
        FileKind::Elf64 => {
            let header = FileHeader64::<Endianness>::parse(head).ok()?;
            let endian = header.endian().ok()?;
            let parts = header.program_headers(endian, head).ok()?;
            if parts.iter().any(|part| part.p_type(endian) == PT_INTERP) {
                return None;
            }
            if is_go(path) {
                if purpose == Purpose::References {
                    return Some(format!("{name} is a Go program, which calls the kernel without libc, {so}."));
                }
                return Some(format!(
                    "{name} is a Go program whose runtime asks the kernel for memory itself, {so}; with cgo \
                     (CGO_ENABLED=1 and a package that imports \"C\") it asks through libc."
                ));
            }
            Some(format!(
                "{name} is statically linked: no library can be loaded into it, {so}; link it \
                 dynamically, at least with libc."
            ))
        }
        FileKind::Elf32 => Some(format!("{name} is a program of 32 bits, and the library is not; build it for 64.")),
        _ => None,
    }
}

/// Whether the Go tool chain linked a program: it leaves this section, also in stripped programs.
pub fn is_go(path: &Path) -> bool {
    let is_linked_by_go = || {
        let file = ReadCache::new(fs::File::open(path).ok()?);
        let header = FileHeader64::<Endianness>::parse(&file).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &file).ok()?;
        sections.section_by_name(endian, b".go.buildinfo").map(|_| ())
    };
    is_linked_by_go().is_some()
}

/// The names of a program's dynamic symbols, of which nothing else is read.
fn names_it_is_linked_by(path: &Path) -> Option<Vec<u8>> {
    let file = ReadCache::new(fs::File::open(path).ok()?);
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &file).ok()?;
    let symbols = sections.iter().find(|section| section.sh_type(endian) == SHT_DYNSYM)?;
    let names = sections.section(symbols.link(endian)).ok()?;
    Some(names.data(endian, &file).ok()?.to_vec())
}

fn head(path: &Path, bytes: u64) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    fs::File::open(path).ok()?.take(bytes).read_to_end(&mut head).ok()?;
    Some(head)
}

/// As `execvp` finds it.
fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_has_nothing_against_it() {
        assert_eq!(of_file(&std::env::current_exe().unwrap(), Purpose::Attribute), None);
        assert!(why(&["true".into()], None, false).contains("clears LD_PRELOAD"));
        assert!(why(&["true".into()], None, true).contains("ended before"));
    }

    #[test]
    fn a_dynamic_program_names_its_loader_and_its_libraries() {
        let own = std::env::current_exe().unwrap();
        assert!(loader(&own).unwrap().contains("/ld"), "{:?}", loader(&own));
        assert!(is_linked_with(&own, "libc.so") && !is_linked_with(&own, "libjemalloc"));
        assert_eq!((loader(Path::new("/etc/passwd")), program(&["/nowhere/nothing".into()])), (None, None));
    }

    #[test]
    fn a_script_is_judged_by_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let (script, program) = (folder.path().join("script"), folder.path().join("program"));
        // An ELF header of x86-64 that has no program headers, as no dynamic program is.
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(64, 0);
        (header[16], header[18], header[20], header[52], header[54]) = (2, 62, 1, 64, 56);
        fs::write(&program, header).unwrap();
        for line in ["#!/bin/sh\n".into(), "#!/usr/bin/env sh\n".into(), format!("#!{}\n", script.display())] {
            fs::write(&script, line).unwrap();
            assert_eq!(of_file(&script, Purpose::Provision), None);
        }
        fs::write(&script, format!("#! {} -x\n", program.display())).unwrap();
        assert!(of_file(&script, Purpose::Provision).unwrap().contains("statically linked"));
        assert!(
            why(&["mpirun".into(), "-n".into(), "2".into(), script.into()], Some(Launcher::Hydra), true)
                .contains("statically")
        );
    }
}
