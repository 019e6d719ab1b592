//! `bursar provision` and `bursar advise run` on programs with another allocator than glibc's.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::allocators::allocators;
use support::{bursar, json_after};

const FILLED_BYTES: u64 = 96 << 20;

/// A program that fills blocks of 1000 bytes, slowly, so that a helper can act meanwhile.
fn fills(folder: &Path) -> String {
    let (source, program) = (folder.join("blocks.c"), folder.join("blocks"));
    let text = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) {\n unsigned sum = 0;\n \
                for (int i = 0; i < 96 << 10; i++) { char *at = malloc(1000); memset(at, 1, 1000); sum += at[i % 1000]; \
                if (i % 1024 == 0) usleep(2000); }\n return sum != 96 << 10; }\n";
    std::fs::write(&source, text).unwrap();
    assert!(Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(&source).status().unwrap().success());
    program.display().to_string()
}

/// Checks the statistics of a command with each allocator.
fn with_each(words: &[&str], is_right: impl Fn(&Value) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let program = fills(folder.path());
    for allocator in allocators() {
        let mut command = bursar();
        command.args(words).args(["-q", "--stats", "-", "--", &program]);
        // There is no pool in this folder.
        command.env("LD_PRELOAD", &allocator).env("BURSAR_POOLS", folder.path());
        let (status, stats, _) = json_after(&mut command);
        assert_eq!(status, 0, "{allocator}");
        assert!(is_right(&stats), "{allocator}: {stats:#}");
    }
}

#[test]
fn provision_serves_other_allocators() {
    with_each(&["provision"], |stats| {
        stats["passed_to_linux"]["no_pool"]["bytes"].as_u64().is_some_and(|bytes| bytes > FILLED_BYTES / 2)
    });
}

#[test]
fn advise_advises_other_allocators() {
    with_each(&["advise", "run"], |stats| stats["decisions"].as_u64().is_some_and(|decisions| decisions > 0));
}
