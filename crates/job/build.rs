//! Compiles what is not Rust: the stub (`stub/`), statically, so that it starts on any machine and stays small, and the
//! library that runs inside observed processes (`preload/`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

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
    compile(&["-static", "-s", "-ffunction-sections", "-Wl,--gc-sections"], &stub, &out.join("stub"));
    compile(&LIBRARY, &here.join("../../preload"), &out.join("libbursar.so"));
}

/// All C and assembler of a folder, as one program or library.
fn compile(options: &[&str], folder: &Path, into: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let files = files.map(|entry| entry.expect("a folder's entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "c" || end == "S")).collect();
    files.sort();
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]).args(options).args(files).arg("-o").arg(into);
    match command.status() {
        Ok(status) if status.success() => {}
        other => panic!(
            "{compiler} could not compile {} ({other:?}); install gcc and libc6-dev, or set CC",
            folder.display()
        ),
    }
}
