//! Compiles the stub (`stub/stub.c`), statically, so that it starts on any machine and stays small.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=stub/stub.c");
    println!("cargo::rerun-if-env-changed=CC");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("stub");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(&compiler)
        .args(["-std=gnu11", "-O2", "-static", "-s", "-Wall", "-Wextra", "-Werror", "-ffunction-sections"])
        .args(["-Wl,--gc-sections", "stub/stub.c", "-o"])
        .arg(&out)
        .status();
    match status {
        Ok(status) if status.success() => {}
        other => panic!("{compiler} could not compile the stub ({other:?}); install gcc and libc6-dev, or set CC"),
    }
}
