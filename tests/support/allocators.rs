//! Allocators other than glibc's.

use super::need;

const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
/// File names without the versions, which differ between distributions.
const ALLOCATORS: [&str; 3] = ["libjemalloc.so.", "libtcmalloc_minimal.so.", "libmimalloc.so."];

/// The paths of those that are installed.
pub fn allocators() -> Vec<String> {
    let names: Vec<_> =
        std::fs::read_dir(LIBRARIES).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    let path = |allocator: &str| {
        let mut names = names.iter().filter_map(|name| name.to_str());
        names.find(|name| name.starts_with(allocator)).map(|name| format!("{LIBRARIES}/{name}"))
    };
    let paths = ALLOCATORS.into_iter().map(|allocator| (allocator, path(allocator)));
    paths.filter(|(allocator, path)| need(allocator, path.is_some())).filter_map(|(_, path)| path).collect()
}
