//! Reports as they were last written, one file for each case.

use std::path::Path;

/// Compares reports with the recorded ones, or writes these where BURSAR_WRITE_GOLDEN is set. `kinds`: how the names begin; no other
/// file of these kinds may be there.
pub fn check(kinds: &[&str], reports: impl Iterator<Item = (&'static str, String)>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let is_written = std::env::var_os("BURSAR_WRITE_GOLDEN").is_some();
    let mut names = Vec::new();
    for (name, found) in reports {
        let file = format!("{name}.txt");
        let path = folder.join(&file);
        if is_written {
            std::fs::write(&path, &found).unwrap();
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(known == found, "{name} is now\n{found}\nand was\n{known}");
        names.push(file);
    }
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let is_of_kind = kinds.iter().any(|kind| file.starts_with(&format!("{kind}-")));
        assert!(!is_of_kind || names.contains(&file), "{file} is of no case");
    }
}
