//! Compiles what is not Rust: the stub (`stub/`), statically, so that it starts on any machine and stays small, and the
//! two libraries that run inside observed processes (`preload/`, and `preload/references/`, which `bursar run` uses).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What the library that notes references has of the runtime's files, beside its own.
const SHARED: [&str; 11] = [
    "arena.c",
    "confine.c",
    "detour.c",
    "exec.c",
    "patch.c",
    "process.c",
    "space.c",
    "statm.c",
    "symbols.c",
    "text.c",
    "x86.c",
];

/// Few mappings, for they are most of what a small library costs a process that lives a millisecond.
const SMALL: [&str; 2] = ["-Wl,-z,noseparate-code", "-Wl,-z,norelro"];

/// Without `-z defs` a symbol that nobody defines would be found missing by the loader, of every program.
const LIBRARY: [&str; 8] = [
    "-D_GNU_SOURCE",
    "-fPIC",
    "-shared",
    "-fno-stack-protector",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-Wl,-z,now",
    "-Wl,-z,defs",
];

fn main() {
    println!("cargo::rerun-if-env-changed=CC");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));

    let stub = here.join("stub");
    compile(&["-static", "-s", "-ffunction-sections", "-Wl,--gc-sections"], sources(&stub), &out.join("stub"));
    let runtime = here.join("../../preload");
    compile(&LIBRARY, sources(&runtime), &out.join("libbursar.so"));
    let noting =
        sources(&runtime.join("references")).into_iter().chain(SHARED.map(|name| runtime.join(name))).collect();
    compile(&[&LIBRARY[..], &SMALL].concat(), noting, &out.join("libbursar-references.so"));
}

/// All C and assembler of a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let files = files.map(|entry| entry.expect("a folder's entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "c" || end == "S")).collect();
    files.sort();
    files
}

/// As one program or library.
fn compile(options: &[&str], files: Vec<PathBuf>, into: &Path) {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]).args(options).args(files).arg("-o").arg(into);
    match command.status() {
        Ok(status) if status.success() => {}
        other => {
            panic!("{compiler} could not compile {} ({other:?}); install gcc and libc6-dev, or set CC", into.display())
        }
    }
}
