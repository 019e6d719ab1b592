//! Patterns of components that match no object of the run.

use std::collections::BTreeSet;

use model::UNMATCHED_NOTE;

use crate::log::ProcessLog;

/// Names that are listed beside a pattern that matches none.
const MOST_NAMES: usize = 3;
/// Names have so many letters in common at least, one after the other, to be near a pattern.
const LEAST_COMMON: usize = 3;

/// bursar's own library.
const OWN: &str = "libbursar-";

/// For each pattern (component's name, glob) that matches no shared object of the run, or only what is never a component's, a
/// sentence with the nearest names. Without logs none.
pub fn unmatched(logs: &[ProcessLog], patterns: &[(String, String)]) -> Vec<String> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut programs: BTreeSet<&str> = BTreeSet::new();
    for log in logs {
        let objects = log.objects.iter().filter(|(_, object)| !object.path.is_empty());
        for (id, object) in objects {
            let name = base(&object.path);
            if name.starts_with(OWN) {
                continue;
            }
            if *id == 1 || is_libc(name) {
                programs.insert(name)
            } else {
                names.insert(name)
            };
        }
    }
    if names.is_empty() && programs.is_empty() {
        return Vec::new();
    }
    let sentence = |(component, glob): &(String, String)| {
        if names.iter().any(|name| matches(glob.as_bytes(), name.as_bytes())) {
            return None;
        }
        if let Some(name) = programs.iter().find(|name| matches(glob.as_bytes(), name.as_bytes())) {
            return Some(format!(
                "{UNMATCHED_NOTE}{component}={glob} matches {name} alone, and the program itself, libc and the loader are always \
                 the application's"
            ));
        }
        Some(format!(
            "{UNMATCHED_NOTE}{component}={glob} matches no shared object that the command loaded (the pattern is of the whole file \
             name, without folders); {}",
            nearest(glob, &names)
        ))
    };
    patterns.iter().filter_map(sentence).collect()
}

/// The loader and libc.
fn is_libc(name: &str) -> bool {
    ["libc.so.", "libc-2", "ld-", "linux-vdso"].iter().any(|beginning| name.starts_with(beginning))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// As `preload/objects.c` matches: `*` any text, `?` one byte.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    match (glob.split_first(), name.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', glob_rest)), _) => (0..=name.len()).any(|from| matches(glob_rest, &name[from..])),
        (Some((letter, glob_rest)), Some((found, name_rest))) => {
            (*letter == b'?' || letter == found) && matches(glob_rest, name_rest)
        }
        (Some(_), None) => false,
    }
}

/// The names that have most in common with a pattern, in words.
fn nearest(glob: &str, names: &BTreeSet<&str>) -> String {
    let wanted = core(glob.rsplit('/').next().unwrap_or(glob));
    let least = LEAST_COMMON.min(wanted.len()).max(1);
    let mut near: Vec<(usize, &str)> = names.iter().map(|name| (common(&wanted, &core(name)), *name)).collect();
    near.sort_by_key(|(letters, name)| (std::cmp::Reverse(*letters), name.len()));
    let near: Vec<&str> =
        near.iter().filter(|(letters, _)| *letters >= least).take(MOST_NAMES).map(|(_, name)| *name).collect();
    if !near.is_empty() {
        return format!("near it are {}", near.join(", "));
    }
    let some: Vec<&str> = names.iter().take(MOST_NAMES).copied().collect();
    match names.len().saturating_sub(MOST_NAMES) {
        _ if some.is_empty() => "it loaded none but libc and the loader".into(),
        0 => format!("it loaded {}", some.join(", ")),
        more => format!("it loaded {} and {more} more", some.join(", ")),
    }
}

/// What tells names of libraries apart.
fn core(name: &str) -> Vec<u8> {
    let name = name.strip_prefix("lib").unwrap_or(name);
    let end = name.find(".so").unwrap_or(name.len());
    name[..end].to_ascii_lowercase().bytes().filter(|letter| !b"*?".contains(letter)).collect()
}

/// The length of the longest text that is in both.
fn common(one: &[u8], other: &[u8]) -> usize {
    let mut longest = 0;
    for from in 0..one.len() {
        for at in 0..other.len() {
            let alike = one[from..].iter().zip(&other[at..]).take_while(|(a, b)| a == b).count();
            longest = longest.max(alike);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Object;

    fn logs(paths: &[&str]) -> Vec<ProcessLog> {
        let object = |path: &&str| {
            let (path, soname) = (path.to_string(), String::new());
            Object { component: 0, loaded_in: 0, path, soname, needed: Vec::new() }
        };
        let objects = (1u64..).zip(paths.iter().map(object)).collect();
        vec![ProcessLog { objects, ..ProcessLog::default() }]
    }

    fn told(glob: &str) -> Option<String> {
        let paths =
            ["/usr/bin/app", "/lib/libc.so.6", "/opt/libhdf5_hl.so.200", "/opt/libhdf5.so.200", "/opt/libm.so.6"];
        unmatched(&logs(&paths), &[("x".into(), glob.into())]).pop()
    }

    #[test]
    fn a_pattern_that_matches_is_not_spoken_of() {
        for glob in ["libhdf5.so*", "lib?df5.so.200", "*", "*hl*"] {
            assert_eq!(told(glob), None, "{glob}");
        }
    }

    #[test]
    fn a_pattern_that_matches_nothing_has_the_nearest_names() {
        let said = told("libhdf5.so").unwrap();
        assert!(said.starts_with("--component x=libhdf5.so matches no shared object"), "{said}");
        assert!(said.ends_with("near it are libhdf5.so.200, libhdf5_hl.so.200"), "{said}");
        assert!(told("/opt/HDF5*").unwrap().contains("near it are libhdf5.so.200"));
        assert!(told("libfftw3*").unwrap().ends_with("it loaded libhdf5.so.200, libhdf5_hl.so.200, libm.so.6"));
    }

    #[test]
    fn libc_and_the_program_are_never_a_component_s() {
        assert!(told("libc.so*").unwrap().contains("matches libc.so.6 alone"));
        assert!(told("app").unwrap().contains("matches app alone"));
    }

    #[test]
    fn without_logs_nothing_is_said() {
        assert_eq!(unmatched(&[], &[("x".into(), "y".into())]), [""; 0]);
    }
}
