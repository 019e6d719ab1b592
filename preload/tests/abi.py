"""Generated from preload/abi.h by `UPDATE_ABI=1 cargo test -p runtime-abi`. Do not edit."""

import struct

LOG_MAGIC = b"\x89BURLOG\n"
POOL_MAGIC = b"BURPOOL1"
ZERO_MAGIC = b"BURZERO1"
PROVISION_MAGIC = b"BURTOLD1"
ADVICE_MAGIC = b"BURADVC1"
REFERENCE_MAGIC = b"BURREFS1"
LOG_VERSION = 1
LOG_HEADER_BYTES = 12
LOG_FRAME_BYTES = 8
LOG_KINDS = 8
KINDS = 6
OWNERS_BEGIN = 8
OWNERS = 128
POOL_SEGMENTS = 240
POOL_ZEROING_UNITS = 65472
PASSED_REASONS = 13
PLAN_VERSION = 1
REGION_BYTES = 2097152
ADVICE_DECISIONS = 1000
ADVICE_OBJECT = 48
REFERENCE_RING = 65536
REFERENCE_RUNS = 4096
REFERENCE_CLASSES = 16
REFERENCE_RUNS_AT = 4096
REFERENCE_RING_AT = 266240
REFERENCE_FILE_BYTES = 1314816
PROCESS_GOES_ON = 256
LOG_ENTRY = {
    80: "process",
    79: "object",
    87: "owner",
    84: "totals",
    85: "touched",
    71: "grown",
    70: "function",
    67: "calls",
    68: "durations",
    88: "exchanged",
    77: "mark",
    78: "note",
    69: "end",
}
LOG_REASON = {
    0: "start",
    1: "timer",
    2: "shrink",
    3: "mark",
    4: "init",
    5: "initialized",
    6: "finalize",
    7: "fork",
    8: "share",
    9: "sandbox",
    10: "exec",
    11: "exit",
}
KIND = {
    0: "heap",
    1: "mapped",
    2: "stack",
    3: "shared",
    4: "page_cache",
    5: "hugetlb",
}
OWNER = {
    0: "unattributed",
    1: "retained",
    2: "own",
}
POOL_STATUS = {
    0: "granted",
    1: "exhausted",
    2: "over_user",
    3: "over_cgroup",
    4: "refused",
}
POOL_ZEROING_STATE = {
    0: "not_to_zero",
    1: "to_zero",
    2: "being_zeroed",
    3: "zeroed",
}
PASSED = {
    0: "small",
    1: "reserved",
    2: "stack",
    3: "fixed",
    4: "code",
    5: "kind",
    6: "edge",
    7: "exhausted",
    8: "cap",
    9: "no_pool",
    10: "taken_back",
    11: "forked",
    12: "advised",
}
PROVISION_LEFT_ALONE = {
    1: "sanitizer",
    2: "libc",
}
ADVICE_KIND = {
    0: "mmap",
    1: "heap",
    2: "bss",
    3: "data",
}
ADVICE_ACTION = {
    0: "leave",
    1: "huge",
    2: "eager",
    3: "base",
    4: "pool",
    5: "ahead",
    6: "demote",
}
ADVICE_WHY = {
    0: "by_rule",
    1: "in_order",
    2: "like_such",
    3: "sparse",
    4: "no_blocks",
    5: "no_room",
}
ADVICE_LEFT_ALONE = {
    1: "sanitizer",
    2: "libc",
    3: "disabled",
}
REFERENCE_KIND = {
    0: "read",
    1: "write",
    2: "fault",
    3: "file",
    4: "mapped",
    5: "process",
    6: "removed",
    7: "in_memory",
}
PROCESS_PART = {
    0: "pid",
    1: "parent",
    2: "began_ns",
    3: "peak_bytes",
    4: "resident",
    5: "heap",
    6: "most_heap",
    7: "inherited",
    8: "shares",
    9: "own",
    10: "user_us",
    11: "system_us",
    12: "minor_faults",
    13: "major_faults",
    14: "name",
    15: "name_rest",
    16: "status",
    17: "ended_ns",
    18: "heap_at",
}
REFERENCE_CLASS = {
    0: "page_cache",
    1: "direct",
    2: "dax",
    3: "tmpfs",
    4: "ramfs",
    5: "hugetlbfs",
    6: "nfs",
    7: "cifs",
    8: "plan9",
    9: "fuse",
    10: "ceph",
    11: "afs",
    12: "lustre",
    13: "gpfs",
    14: "zfs",
    15: "beegfs",
}
# Bytes, and of each field its name, type, offset and number of elements.
STRUCTS = {
    "pool_request": (32, [
        ("magic", "s", 0, 8),
        ("node", "i", 8, 1),
        ("flags", "I", 12, 1),
        ("bytes", "Q", 16, 1),
        ("least", "Q", 24, 1),
    ]),
    "pool_segment": (16, [
        ("bytes", "Q", 0, 1),
        ("node", "i", 8, 1),
        ("dirty", "I", 12, 1),
    ]),
    "pool_reply": (3864, [
        ("status", "I", 0, 1),
        ("segments", "I", 4, 1),
        ("page_bytes", "Q", 8, 1),
        ("free_bytes", "Q", 16, 1),
        ("segment", "pool_segment", 24, 240),
    ]),
    "pool_to_zero": (24, [
        ("magic", "s", 0, 8),
        ("first_unit", "I", 8, 1),
        ("units", "I", 12, 1),
        ("unit_bytes", "Q", 16, 1),
    ]),
    "pool_zeroing": (65536, [
        ("asleep", "I", 0, 1),
        ("unused", "I", 4, 15),
        ("state", "B", 64, 65472),
    ]),
    "provision_passed": (16, [
        ("calls", "Q", 0, 1),
        ("bytes", "Q", 8, 1),
    ]),
    "provision_told": (680, [
        ("magic", "s", 0, 8),
        ("bytes", "Q", 8, 1),
        ("pid", "Q", 16, 1),
        ("parent", "Q", 24, 1),
        ("ticks", "Q", 32, 1),
        ("rank_plus_1", "Q", 40, 1),
        ("node_plus_1", "Q", 48, 1),
        ("leased_bytes", "Q", 56, 1),
        ("pool_bytes", "Q", 64, 1),
        ("pool_bytes_peak", "Q", 72, 1),
        ("demand_bytes", "Q", 80, 1),
        ("demand_bytes_peak", "Q", 88, 1),
        ("served_calls", "Q", 96, 1),
        ("served_bytes", "Q", 104, 1),
        ("start_ns", "Q", 112, 1),
        ("lease_ns", "Q", 120, 1),
        ("populate_ns", "Q", 128, 1),
        ("zeroed_bytes", "Q", 136, 1),
        ("zeroed_beside_bytes", "Q", 144, 1),
        ("forks", "Q", 152, 1),
        ("fork_ns", "Q", 160, 1),
        ("fallbacks", "Q", 168, 1),
        ("failed", "Q", 176, 1),
        ("left_alone", "Q", 184, 1),
        ("copied_bytes", "Q", 192, 1),
        ("unwritten_bytes", "Q", 200, 1),
        ("namespace", "Q", 208, 1),
        ("passed", "provision_passed", 216, 13),
        ("executable", "s", 424, 256),
    ]),
    "advice_decision": (120, [
        ("t_ns", "Q", 0, 1),
        ("address", "Q", 8, 1),
        ("from", "Q", 16, 1),
        ("bytes", "Q", 24, 1),
        ("kind", "I", 32, 1),
        ("size_class", "I", 36, 1),
        ("ordinal", "Q", 40, 1),
        ("action", "I", 48, 1),
        ("why", "I", 52, 1),
        ("cost_ns", "Q", 56, 1),
        ("benefit_ns", "Q", 64, 1),
        ("object", "s", 72, 48),
    ]),
    "advice_told": (120424, [
        ("magic", "s", 0, 8),
        ("bytes", "Q", 8, 1),
        ("pid", "Q", 16, 1),
        ("parent", "Q", 24, 1),
        ("ticks", "Q", 32, 1),
        ("left_alone", "Q", 40, 1),
        ("promoted", "Q", 48, 1),
        ("demoted", "Q", 56, 1),
        ("populated_bytes", "Q", 64, 1),
        ("advised_bytes", "Q", 72, 1),
        ("helper_cpu_ns", "Q", 80, 1),
        ("ranges", "Q", 88, 1),
        ("ranges_lost", "Q", 96, 1),
        ("rules_matched", "Q", 104, 1),
        ("rules_unmatched", "Q", 112, 1),
        ("rules_of_others", "Q", 120, 1),
        ("huge_bytes_peak", "Q", 128, 1),
        ("anonymous_bytes_peak", "Q", 136, 1),
        ("start_ns", "Q", 144, 1),
        ("decisions", "Q", 152, 1),
        ("namespace", "Q", 160, 1),
        ("executable", "s", 168, 256),
        ("decision", "advice_decision", 424, 1000),
    ]),
    "reference": (16, [
        ("what", "Q", 0, 1),
        ("place", "Q", 8, 1),
    ]),
    "reference_run": (64, [
        ("file", "I", 0, 1),
        ("pages", "I", 4, 1),
        ("first_page", "Q", 8, 1),
        ("kind", "I", 16, 1),
        ("ms", "I", 20, 1),
        ("read_bytes", "Q", 24, 1),
        ("written_bytes", "Q", 32, 1),
        ("unused", "Q", 40, 3),
    ]),
    "reference_head": (320, [
        ("magic", "s", 0, 8),
        ("bytes", "Q", 8, 1),
        ("tail", "Q", 16, 1),
        ("processes", "Q", 24, 1),
        ("unpatched", "Q", 32, 1),
        ("lost", "Q", 40, 1),
        ("runs", "Q", 48, 1),
        ("hold_until_ms", "Q", 56, 1),
        ("ended", "Q", 64, 1),
        ("with_io_uring", "Q", 72, 1),
        ("wants_paths", "Q", 80, 1),
        ("pipe_bytes", "Q", 88, 1),
        ("unused", "Q", 96, 4),
        ("head", "Q", 128, 1),
        ("unused_too", "Q", 136, 7),
        ("hidden_bytes", "Q", 192, 16),
    ]),
}


def read(name, data, start=0):
    """The fields of a struct by name: numbers, bytes up to the first zero for text, lists of dicts."""
    size, fields = STRUCTS[name]
    if len(data) < start + size:
        raise ValueError(f"{name}: {len(data) - start} bytes of {size}")
    found = {}
    for field, kind, at, count in fields:
        at += start
        if kind in STRUCTS:
            found[field] = [read(kind, data, at + i * STRUCTS[kind][0]) for i in range(count)]
        else:
            values = struct.unpack_from(f"<{count}{kind}", data, at)
            found[field] = values[0].split(b"\0")[0] if kind == "s" else values[0] if count == 1 else values
    return found


def pack(name, **values):
    """A struct of these fields; the others are zero."""
    size, fields = STRUCTS[name]
    data = bytearray(size)
    for field, kind, at, count in fields:
        if field in values:
            struct.pack_into(f"<{count}{kind}", data, at, values[field])
    return bytes(data)
