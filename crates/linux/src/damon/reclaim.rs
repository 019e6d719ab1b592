//! Whether DAMON pages out idle memory: by a scheme, or by its module `damon_reclaim` (Documentation/admin-guide/mm/damon/reclaim.rst).

use std::fs;
use std::path::{Path, PathBuf};

use crate::file;

/// The file that shows so; `None`: it does not, or this user may not know.
pub fn pages_out() -> Option<PathBuf> {
    within(Path::new("/sys"))
}

fn within(sys: &Path) -> Option<PathBuf> {
    let says = |path: &Path, word: &str| file::read_if_present(path).is_some_and(|text| text.trim() == word);
    let module = sys.join("module/damon_reclaim/parameters/enabled");
    if says(&module, "Y") {
        return Some(module);
    }
    let working = below(&sys.join("kernel/mm/damon/admin/kdamonds"));
    let working = working.into_iter().filter(|kdamond| says(&kdamond.join("state"), "on"));
    let contexts = working.flat_map(|kdamond| below(&kdamond.join("contexts")));
    let mut actions = contexts.flat_map(|context| below(&context.join("schemes"))).map(|scheme| scheme.join("action"));
    actions.find(|action| says(action, "pageout"))
}

/// The subfolders of a folder, by name.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_schemes_that_page_out_are_named() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(within(sys.path()), None);
        let module = sys.path().join("module/damon_reclaim/parameters");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("enabled"), "N\n").unwrap();
        let kdamond = sys.path().join("kernel/mm/damon/admin/kdamonds/1");
        let schemes = kdamond.join("contexts/0/schemes");
        for (scheme, action) in [("0", "stat\n"), ("1", "pageout\n")] {
            fs::create_dir_all(schemes.join(scheme)).unwrap();
            fs::write(schemes.join(scheme).join("action"), action).unwrap();
        }
        fs::write(kdamond.join("state"), "off\n").unwrap();
        assert_eq!(within(sys.path()), None, "a disabled scheme does nothing");
        fs::write(kdamond.join("state"), "on\n").unwrap();
        assert_eq!(within(sys.path()), Some(schemes.join("1/action")));
        fs::write(schemes.join("1/action"), "lru_prio\n").unwrap();
        assert_eq!(within(sys.path()), None, "a scheme that only sorts LRU lists reclaims nothing");
        fs::write(module.join("enabled"), "Y\n").unwrap();
        assert_eq!(within(sys.path()), Some(module.join("enabled")));
    }
}
