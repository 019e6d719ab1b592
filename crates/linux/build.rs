//! Compiles the BPF programs with clang and places the objects to be embedded. Without clang the build succeeds, and `linux::bpf` gives the
//! reason why it has no programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const OBJECTS: [&str; 3] = ["faults", "job", "pages"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(bpf_object)");
    println!("cargo::rerun-if-env-changed=CLANG");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../bpf");
    println!("cargo::rerun-if-changed={}", root.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    match compile(&root, &out) {
        Ok(()) => println!("cargo::rustc-cfg=bpf_object"),
        Err(why) => {
            fs::write(out.join("bpf-missing.txt"), &why).expect("OUT_DIR is writable");
            println!("cargo::warning=built without BPF programs: {why}");
        }
    }
}

/// The error is a sentence that `doctor` prints.
fn compile(root: &Path, out: &Path) -> Result<(), String> {
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => return Err(format!("bursar has no BPF programs for {}", other.unwrap_or("this processor"))),
    };
    OBJECTS.iter().try_for_each(|name| compile_one(name, arch, root, out))
}

fn compile_one(name: &str, arch: &str, root: &Path, out: &Path) -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]);
    command.arg(format!("-D__TARGET_ARCH_{arch}"));
    // The headers of the helpers come with the linked libbpf.
    if let Some(include) = env::var_os("DEP_BPF_INCLUDE") {
        command.arg("-I").arg(include);
    }
    let object = out.join(format!("{name}.bpf.o"));
    command.arg("-c").arg(root.join(format!("{name}.bpf.c"))).arg("-o").arg(&object);
    let output = command.output().map_err(|e| format!("{clang} could not be run when bursar was built ({e})"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.contains("error")).unwrap_or("no error was named");
        return Err(format!("{clang} could not compile them when bursar was built ({line})"));
    }
    remove_debug_information(&clang, &object);
    Ok(())
}

/// Removes DWARF, a third of each object, which no kernel uses, and keeps BTF. Without LLVM's strip beside clang the object stays as it is.
fn remove_debug_information(clang: &str, object: &Path) {
    let Ok(found) = Command::new(clang).arg("-print-prog-name=llvm-strip").output() else { return };
    let strip = String::from_utf8_lossy(&found.stdout);
    let _ = Command::new(strip.trim()).arg("--strip-debug").arg(object).status();
}
