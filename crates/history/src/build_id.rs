//! Which build of a program a file is.

use std::path::Path;

use anyhow::Context;
use object::{Object, ReadCache};

/// In hexadecimal digits; `None`: it has none.
pub fn build_id(path: &Path) -> anyhow::Result<Option<String>> {
    let file = std::fs::File::open(path).with_context(|| format!("{} could not be read", path.display()))?;
    // Of large files, the few parts that matter.
    let data = ReadCache::new(file);
    let file = object::File::parse(&data).with_context(|| format!("{} is no program", path.display()))?;
    let id = file.build_id().with_context(|| format!("{} is no program", path.display()))?;
    Ok(id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()))
}
