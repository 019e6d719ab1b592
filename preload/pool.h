// clang-format off
//
// Between the runtime and what is outside: how it asks a pool's broker for memory, and what it tells about itself.
//
// A pool is segments, each a file of hugetlbfs (or a device of device-dax) whose pages are there, zeroed. The runtime
// connects to the broker's socket (SOCK_SEQPACKET), sends one `pool_request`, and receives one `pool_reply` with a
// descriptor for each segment (SCM_RIGHTS), in the order of `segment`; then both close. The lease is the open file
// description: it ends when the last descriptor and the last mapping of it are gone, whoever holds them.
//
// Free memory of a lease can be zeroed while the program does something else, by who started it. The runtime connects to
// the socket `zero` in the directory of BURSAR_PROVISION (SOCK_SEQPACKET) and sends `pool_to_zero` with one descriptor:
// first, with no units, a file that both map (`pool_zeroing`), then one for each segment. A unit is offered by its state;
// a byte in the FIFO `bell` there wakes who fell asleep. It ends when either closes.
//
// Environment
//   BURSAR_PROVISION  a directory: provisioning is on, and each process tells about itself there in a file of its own,
//                     provision.HOST.PID.TICKS (and .1 …, after exec): one `provision_told`, mapped and kept up to
//                     date, so that it is there after a kill. A child of a fork has one when it wants 64 KiB
//   BURSAR_POOL       the path of the broker's socket; without it, or where nobody answers, the kernel's huge pages
//   BURSAR_POOL_SIZE  bytes to lease when first something is needed; else as much as is needed, when it is
//   BURSAR_POOL_FAIL  set: what the pool cannot serve fails with ENOMEM; else it is the kernel's
//   BURSAR_POOL_NODE  the node to take memory from; else the rank's (local rank modulo nodes), else where it runs
//   BURSAR_PIN        set: to the processors of the node
//
// All numbers are little endian, as both machines are that this runs on.
//
// clang-format on
#pragma once

#include <stdint.h>

enum { POOL_SEGMENTS = 240 }; // in one reply; the kernel passes 253 descriptors at once

enum pool_status {
    POOL_GRANTED,
    POOL_EXHAUSTED,   // less is free than `least`
    POOL_OVER_USER,   // the user's cap
    POOL_OVER_CGROUP, // the cap of the cgroup: by default its memory limit
    POOL_REFUSED      // a request that is not understood
};

struct pool_request {
    char magic[8];  // "BURPOOL1"
    int32_t node;   // -1: any; else this one first, then the others
    uint32_t flags; // 0
    uint64_t bytes; // wanted: granted in whole segments, at least so many unless less is free
    uint64_t least; // fewer are of no use, and none are granted then
};

struct pool_segment {
    uint64_t bytes;
    int32_t node;
    uint32_t dirty; // 0: all zeroes
};

struct pool_reply {
    uint32_t status; // enum pool_status
    uint32_t segments;
    uint64_t page_bytes; // 2 MiB or 1 GiB: what addresses and offsets are multiples of
    uint64_t free_bytes; // left in the pool
    struct pool_segment segment[POOL_SEGMENTS];
};

struct pool_to_zero {
    char magic[8];              // "BURZERO1"
    uint32_t first_unit, units; // numbers of the segment's units in `state`
    uint64_t unit_bytes;
};

enum { POOL_ZEROING_UNITS = (64 << 10) - 64 }; // those with higher numbers are not offered

// NOT_TO_ZERO and TO_ZERO are set by the runtime, and by the other side BEING_ZEROED if it is TO_ZERO, and then ZEROED.
enum pool_zeroing_state { POOL_NOT_TO_ZERO, POOL_TO_ZERO, POOL_BEING_ZEROED, POOL_ZEROED };

struct pool_zeroing {
    uint32_t asleep; // the other side is: it has to be woken
    uint32_t unused[15];
    uint8_t state[POOL_ZEROING_UNITS]; // enum pool_zeroing_state
};

// Why memory was not given from the pool.
enum passed {
    PASSED_SMALL,      // below 64 KiB
    PASSED_RESERVED,   // addresses rather than memory: PROT_NONE, or MAP_NORESERVE of more than half of what is free
    PASSED_STACK,      // threads' stacks: populated, but the kernel's
    PASSED_FIXED,      // at an address the program chose
    PASSED_CODE,       // to be executed
    PASSED_KIND,       // MAP_HUGETLB, MAP_GROWSDOWN, MAP_LOCKED …: the program wants just that
    PASSED_EDGE,       // of the heap and of .bss, before the first and behind the last whole page of the pool
    PASSED_EXHAUSTED,  // the pool has no more
    PASSED_CAP,        // a cap of the user or the cgroup
    PASSED_NO_POOL,    // there is none, or nobody answers: huge pages, populated
    PASSED_TAKEN_BACK, // was the pool's until the program did what huge pages cannot: mprotect of a part, MAP_FIXED
                       // over it
    PASSED_FORKED,     // moved to the kernel's memory before a fork, or copied by a child
    PASSED_ADVISED,    // the profile says that it is not worth huge pages, or less than what the pool is kept for
    PASSED_REASONS
};

struct provision_told {
    char magic[8];  // "BURTOLD1"
    uint64_t bytes; // of this structure
    uint64_t pid, parent, ticks;
    uint64_t rank_plus_1;
    uint64_t node_plus_1;  // 0: any
    uint64_t leased_bytes; // from the pool, now
    uint64_t pool_bytes;   // mapped from the pool, now, in whole pages of it
    uint64_t pool_bytes_peak;
    uint64_t demand_bytes; // as above, and what a larger pool would have served: now
    uint64_t demand_bytes_peak;
    uint64_t served_calls, served_bytes; // by the pool, since the process began
    uint64_t start_ns;                   // what the runtime took before the program began
    uint64_t lease_ns;                   // waiting for the broker
    uint64_t populate_ns; // making what is served present: mapping, and zeroing what had been used before
    uint64_t zeroed_bytes;
    uint64_t zeroed_beside_bytes; // and what who started the program has zeroed meanwhile
    uint64_t forks, fork_ns;      // forks that copied, and how long the parent waited
    uint64_t fallbacks;           // calls that the pool would have served, had it had more
    uint64_t failed;              // of these, those that failed for it (BURSAR_POOL_FAIL)
    uint64_t left_alone;          // 1: built with a sanitizer, or in valgrind; 2: libc could not be patched
    uint64_t copied_bytes;    // of the pool's memory, for the children of a process with several threads, all together
    uint64_t unwritten_bytes; // from the pool and nothing but zeroes, as far as pieces of it tell: when the pool had no
                              // more for the first time, or at the end, whichever is more
    uint64_t namespace;       // the PID namespace in which `pid` is its number; 0: not known
    struct {
        uint64_t calls, bytes;
    } passed[PASSED_REASONS];
    char executable[256];
};
