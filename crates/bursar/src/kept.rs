//! What a command prints, kept until it can be shown.

use std::fs::File;

use anyhow::Context;

pub fn file() -> anyhow::Result<File> {
    let folder = std::env::temp_dir();
    tempfile::tempfile_in(&folder).with_context(|| {
        format!(
            "what the command prints cannot be kept in {}; set TMPDIR to a folder that can be written",
            folder.display()
        )
    })
}
