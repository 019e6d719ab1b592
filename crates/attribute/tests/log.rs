//! Logs are read as they were written, and as far as they are whole.

mod common;

use attribute::{Calls, End, LogError, ProcessLog};
use common::{APPLICATION, BEGIN, Entry, LLVM, Log, MIB, MPI, Who, read};
use model::{MemoryKind, Messages};
use proptest::collection::vec;
use proptest::prelude::*;

fn who() -> Who {
    Who { rank: Some(3), ranks: 4, world: "job@1", ..Who::default() }
}

fn log() -> Log {
    Log::new(who())
        .totals(1, "start", &[(APPLICATION, MemoryKind::Heap, 1024, 1024), (MPI, MemoryKind::PageCache, 4096, 17)])
        .function(1, 1, "MPI_Send")
        .calls(2, &[(1, 5, 100, 10)])
        .mark(3, "solve")
        .heap(4, "timer", &[(LLVM, 41)])
        .touched(4, "timer", &[(MPI, 30)])
        .sent(4, &[(Some(0), 1, 8), (Some(2), 1, 100)])
        .sent(5, &[(None, 1, 5), (Some(2), 3, 300)])
        .calls(5, &[(1, 7, 1000, 20)])
        .note("calls of mmap are not seen")
        .end(6, "exit")
}

#[test]
fn a_log_is_read_as_it_was_written() {
    let read = log().read();
    assert_eq!((read.started.rank, read.started.ranks, read.started.pid), (Some(3), Some(4), 100));
    assert_eq!((read.started.unix_ns, read.started.host.as_str()), (BEGIN, "node1"));
    assert_eq!(read.started.world, "job@1");
    assert_eq!(
        (&read.started.arguments[..], &read.started.components[..]),
        (&["app".into(), "-x".into()][..], &["application".into(), "mpi".into()][..])
    );
    assert_eq!(read.objects[&2].path, "/usr/lib/libLLVM.so");
    assert_eq!(read.objects[&1].needed, ["libc.so.6"]);
    assert_eq!((read.owners[&LLVM].component, read.owners[&LLVM].object), (1, 2));
    assert_eq!(
        read.totals.iter().map(|totals| (totals.t_us, &totals.reason[..])).collect::<Vec<_>>(),
        [(1000, "start"), (4000, "timer")]
    );
    let shared = read.totals[0].changed[1];
    assert_eq!(
        (shared.owner, shared.kind, shared.rss_bytes, shared.pss_bytes),
        (MPI, MemoryKind::PageCache, 4 * MIB, 17 << 10)
    );
    assert_eq!((read.touched.len(), read.touched[0].t_us), (1, 4000));
    assert_eq!((read.touched[0].changed[0].owner, read.touched[0].changed[0].rss_bytes), (MPI, 30 * MIB));
    let sent = |messages, bytes| Messages { messages, bytes };
    assert_eq!(read.sent, [(None, sent(1, 5)), (Some(0), sent(1, 8)), (Some(2), sent(3, 300))].into());
    assert_eq!(read.calls[&1], Calls { calls: 7, got_bytes: 1000, gave_bytes: 20 });
    assert_eq!((read.marks[0].t_us, read.marks[0].name.as_str()), (3000, "solve"));
    assert_eq!(read.notes, ["calls of mmap are not seen"]);
    assert_eq!(read.ended, Some(End { t_us: 6000, how: "exit".into() }));
    assert!(read.complete);
}

#[test]
fn every_prefix_is_read_as_far_as_it_is_whole() {
    let (bytes, whole) = (log().0, log().read());
    let first = Log::new(who()).0;
    let started = 12 + 8 + u32::from_le_bytes([first[12], first[13], first[14], first[15]]) as usize;
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Ok(log) => {
                assert!(length >= started);
                assert_eq!(log.started, whole.started);
                assert!(whole.totals.starts_with(&log.totals) && whole.notes.starts_with(&log.notes));
                assert_eq!((log.ended, log.complete && length < started), (None, false));
            }
            Err(LogError::Nobody) => assert!(length < started, "{length}"),
            Err(error) => panic!("{length}: {error}"),
        }
    }
}

#[test]
fn a_cut_within_an_entry_is_told_and_one_between_two_is_a_log_without_an_end() {
    let bytes = log().0;
    assert!(!read(&bytes[..bytes.len() - 1]).unwrap().complete);
    let without_end = Log::new(who()).heap(1, "start", &[(MPI, 1)]).read();
    assert_eq!((without_end.complete, without_end.ended), (true, None));
}

#[test]
fn other_files_and_versions_are_named() {
    assert!(matches!(read(&b"#!/bin/sh"[..]), Err(LogError::NotALog)));
    let mut newer = log().0;
    newer[8] = 2;
    let error = read(&newer[..]).unwrap_err();
    assert!(error.to_string().contains("version 2") && error.to_string().contains("version 1"), "{error}");
}

#[test]
fn a_process_whose_exec_failed_goes_on() {
    let log = Log::new(who()).end(1, "exec").heap(2, "timer", &[(MPI, 1)]).read();
    assert_eq!(log.ended, None);
}

#[test]
fn what_cannot_be_is_damage_though_its_checksum_is_right() {
    let after = |entry: Entry| {
        let mut log = Log::new(who());
        log.put(entry);
        log.note("behind it").read()
    };
    let huge = after(Entry::new('T').n(1).s("timer").n(1).n(APPLICATION * 8).n(u64::MAX).n(0));
    assert_eq!((huge.complete, huge.totals.len(), huge.notes.len()), (false, 0, 0));
    let many = after(Entry::new('T').n(1).s("timer").n(u64::MAX).n(APPLICATION * 8).n(1).n(1));
    assert!(!many.complete);
    let no_kind = after(Entry::new('T').n(1).s("timer").n(1).n(APPLICATION * 8 + 7).n(1).n(1));
    assert!(!no_kind.complete);
    let later = after(Entry::new('?').n(1));
    assert_eq!((later.complete, later.notes.len()), (true, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn flipped_bits_cost_what_is_behind_them_and_never_panic(flips in vec(any::<prop::sample::Index>(), 1..4)) {
        let (mut bytes, whole) = (log().0, log().read());
        for flip in &flips {
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if let Ok(log) = read(&bytes[..]) {
            prop_assert!(whole.totals.starts_with(&log.totals));
            prop_assert!(log.started == whole.started || flips.len() > 1);
        }
    }

    #[test]
    fn any_payload_behind_a_right_checksum_is_read_without_panic(payloads in vec(vec(any::<u8>(), 1..40), 0..8)) {
        let mut log = Log::new(who());
        for payload in payloads {
            log.0.extend((payload.len() as u32).to_le_bytes());
            log.0.extend(crc32fast::hash(&payload).to_le_bytes());
            log.0.extend(payload);
        }
        let logs: Vec<ProcessLog> = vec![log.read()];
        attribute::attribute(&logs, attribute::Options::default());
    }
}
