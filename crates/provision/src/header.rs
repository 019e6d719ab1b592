//! What the tests hold against `preload/pool.h`.

use std::process::Command;

/// Whether the C compiler finds these assertions (`_Static_assert`) true of it.
pub fn agrees(assertions: &str) -> bool {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../preload/pool.h");
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("layout.c");
    std::fs::write(&source, format!("#include <stddef.h>\n#include \"{header}\"\n{assertions}")).unwrap();
    Command::new("cc").args(["-std=gnu11", "-fsyntax-only"]).arg(&source).status().unwrap().success()
}
