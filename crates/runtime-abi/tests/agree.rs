//! The generated files say what the C compiler says about `preload/abi.h`.

mod generate;

use std::fs;
use std::path::Path;

use generate::Abi;

fn agrees(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_ABI").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap();
    let place = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(found == expected, "{} differs from preload/abi.h (UPDATE_ABI=1 writes it): {place:?}", path.display());
}

#[test]
fn rust_agrees_with_the_header() {
    agrees("src/generated.rs", &Abi::of_header().rust());
}

#[test]
fn python_agrees_with_the_header() {
    agrees("../../preload/tests/abi.py", &Abi::of_header().python());
}

#[test]
fn reasons_have_their_own_names_as_text() {
    let reasons = Abi::of_header().reason_texts;
    let names: Vec<&str> = reasons.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(names, runtime_abi::LogReason::NAMES);
    assert!(reasons.iter().all(|(name, text)| name.to_lowercase() == *text), "{reasons:?}");
}

#[test]
fn structs_read_what_they_write() {
    let segment = runtime_abi::PoolSegment { bytes: 1 << 40, node: -1, dirty: 7 };
    let bytes = segment.to_bytes();
    assert_eq!(bytes.len(), runtime_abi::PoolSegment::BYTES);
    assert_eq!(runtime_abi::PoolSegment::read(&bytes), Some(segment));
    assert_eq!(runtime_abi::PoolSegment::read(&bytes[1..]), None);
}
