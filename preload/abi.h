// Formats that the runtime inside a process shares with the programs outside it.
//
// This header is the only description of them. crates/runtime-abi generates the Rust and the Python side from it:
// `UPDATE_ABI=1 cargo test -p runtime-abi` writes both files, and without UPDATE_ABI the test compares them with what
// the C compiler says. Of a named enum a last value PREFIX_REASONS is their count; other counts are constants of
// unnamed enums.
#pragma once

#include <stdint.h>

// clang-format off
//
// 1. The log of one process: what changed, appended as it changes, readable after a kill at any point.
//
//   header  8 bytes  89 'B' 'U' 'R' 'L' 'O' 'G' 0A
//           u32 LE   LOG_VERSION
//   frame   u32 LE   length of the payload, at least 1
//           u32 LE   CRC-32 (IEEE) of the payload
//           …        payload: one entry
//
// It is named [rank-RANK.]HOST.PID.TICKS.log in the run directory, TICKS being the process's start in clock ticks since
// boot; what exec makes of the process has its own, NAME.1.log and so on. An entry is its kind, one byte, and its fields.
// `n` is an unsigned number as LEB128 (7 bits a byte, the lowest first), `s` a string: its length as n, then its bytes.
// Times are n, in microseconds since the process's log began. Memory is n, in KiB.
//
//   'P' process   n page size, n pid, n parent, n ticks, n unix time in ns when the log began, n rank + 1 (0: no rank),
//                 n ranks (0: not known), s host, s executable, n arguments, s each,
//                 n components, s each name (0 is application, 1 mpi), s world: what tells the ranks of one
//                 MPI_COMM_WORLD from those of another that it spawned ("": not known), n PID namespace in which pid
//                 and parent are its numbers (0: not known), s boot id of the machine ("": not known)
//   'O' object    n id (1 up), n component that it belongs to, n component inside which it was loaded, s path, s soname,
//                 n needed, s each soname: a shared object, or the executable (id 1)
//   'W' owner     n id, n component, n object (0: not told apart): who memory belongs to, as the totals name it. Ids 0
//                 to 7 are not named: see `enum owner` below
//   'T' totals    time, s reason, n count, then count times: n owner * LOG_KINDS + kind, n RSS, n PSS. What is not there
//                 is as it was before. Reasons: the texts of LOG_REASONS below
//   'U' touched   as 'T', by who touched it first; only with BURSAR_TOUCH. Of the owners, those whose object is 0,
//                 UNATTRIBUTED and OWN
//   'G' grown     time, n count, then count times: n component, n bytes of heap that it has obtained since the last totals
//                 and that are resident for certain: an estimate until the next
//   'F' function  n id, n component, s name
//   'C' calls     time, n count, then count times: n function, n calls, n bytes got, n bytes given back, all since the log
//                 began
//   'D' durations time, n count, then count times: n function, n nanoseconds between entering and leaving it, since the log
//                 began; only with BURSAR_TIMES
//   'X' exchanged time, n count, then count times: n rank in the world + 1 (0: another world's), n messages, n bytes, all
//                 sent since the log began; only with BURSAR_COMM
//   'M' mark      time, s name: a phase begins
//   'N' note      s: what the reader should know, as a sentence
//   'E' end       time, s how, a text of LOG_REASONS: exit, exec; finalize, when the log was brought from another node
//
// Kinds of memory: `enum kind`; of entries: `enum log_entry`. The total of a process is the sum over its owners but OWN.
//
// clang-format on

#define LOG_MAGIC "\211BURLOG\n"

enum { LOG_VERSION = 1, LOG_HEADER_BYTES = 12, LOG_FRAME_BYTES = 8, LOG_KINDS = 8 };

enum log_entry {
    ENTRY_PROCESS = 'P',
    ENTRY_OBJECT = 'O',
    ENTRY_OWNER = 'W',
    ENTRY_TOTALS = 'T',
    ENTRY_TOUCHED = 'U',
    ENTRY_GROWN = 'G',
    ENTRY_FUNCTION = 'F',
    ENTRY_CALLS = 'C',
    ENTRY_DURATIONS = 'D',
    ENTRY_EXCHANGED = 'X',
    ENTRY_MARK = 'M',
    ENTRY_NOTE = 'N',
    ENTRY_END = 'E'
};

// Why the totals were taken, and how a process ended. The log holds the text.
#define LOG_REASONS(REASON)                                                                                            \
    REASON(START, "start")             /* the first scan */                                                            \
    REASON(TIMER, "timer")             /* some time after the last one */                                              \
    REASON(SHRINK, "shrink")           /* before memory is freed of which there has never been as much */              \
    REASON(MARK, "mark")               /* a phase begins */                                                            \
    REASON(INIT, "init")               /* before MPI_Init */                                                           \
    REASON(INITIALIZED, "initialized") /* after it */                                                                  \
    REASON(FINALIZE, "finalize")       /* before MPI_Finalize */                                                       \
    REASON(FORK, "fork")               /* the first scan of a child */                                                 \
    REASON(SHARE, "share")             /* before a child shares the memory */                                          \
    REASON(SANDBOX, "sandbox")         /* before the process gives up system calls (seccomp) */                        \
    REASON(EXEC, "exec")               /* before exec replaces the program */                                          \
    REASON(EXIT, "exit")               /* at the end of the process */

#define LOG_REASON_NUMBER(name, text) REASON_##name,
enum log_reason { LOG_REASONS(LOG_REASON_NUMBER) };
#undef LOG_REASON_NUMBER

enum kind { HEAP, MAPPED, STACK, SHARED, PAGE_CACHE, HUGETLB };

enum owner {
    UNATTRIBUTED, // what cannot be explained
    RETAINED,     // free in the allocator, but resident
    OWN           // the runtime's
};

enum { KINDS = HUGETLB + 1, OWNERS_BEGIN = 8, OWNERS = 128 };

// clang-format off
//
// 2. Between the runtime and what is outside: how it asks a pool's broker for memory, and what it tells about itself.
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

#define POOL_MAGIC "BURPOOL1"
#define ZERO_MAGIC "BURZERO1"
#define PROVISION_MAGIC "BURTOLD1"

enum { POOL_SEGMENTS = 240 }; // in one reply; the kernel passes 253 descriptors at once

enum pool_status {
    POOL_GRANTED,
    POOL_EXHAUSTED,   // less is free than `least`
    POOL_OVER_USER,   // the user's cap
    POOL_OVER_CGROUP, // the cap of the cgroup: by default its memory limit
    POOL_REFUSED      // a request that is not understood
};

struct pool_request {
    char magic[8];  // POOL_MAGIC
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
    char magic[8];              // ZERO_MAGIC
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
    PASSED_NO_POOL,    // there is none, or nobody answers: the kernel's huge pages
    PASSED_TAKEN_BACK, // was the pool's until the program did what huge pages cannot: mprotect of a part, MAP_FIXED
                       // over it
    PASSED_FORKED,     // moved to the kernel's memory before a fork, or copied by a child
    PASSED_ADVISED,    // the profile says that it is not worth huge pages, or less than what the pool is kept for
    PASSED_REASONS     // how many there are; inside the runtime: it was given
};

enum provision_left_alone {
    PROVISION_SANITIZER = 1, // built with one, or in valgrind
    PROVISION_LIBC           // it could not be patched
};

struct provision_passed {
    uint64_t calls, bytes;
};

struct provision_told {
    char magic[8];  // PROVISION_MAGIC
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
    uint64_t left_alone;          // enum provision_left_alone; 0: it was not
    uint64_t copied_bytes;    // of the pool's memory, for the children of a process with several threads, all together
    uint64_t unwritten_bytes; // from the pool and nothing but zeroes, as far as pieces of it tell: when the pool had no
                              // more for the first time, or at the end, whichever is more
    uint64_t namespace;       // the PID namespace in which `pid` is its number; 0: not known
    struct provision_passed passed[PASSED_REASONS];
    char executable[256];
};

// clang-format off
//
// 3. Between the runtime and what is outside: what it is to advise the kernel about the program's memory, and what it
// tells that it has done.
//
// Environment
//   BURSAR_ADVICE  a directory: advice is on. In it is `plan`, and each process that has something to tell does so there
//                  in a file of its own, advice.HOST.PID.TICKS (and .1 …, after exec): one `advice_told`, mapped and kept
//                  up to date, so that it is there after a kill. Where it observes, touched.HOST.PID.TICKS, too
//
// The plan is text, a line for each item:
//   plan 1
//   ahead BYTES      the most that is populated ahead of where the program is in a range; 0: nothing
//   dense PAGES      of the 512 of a region: from so many on that are touched, a huge page pays by its faults alone
//   least BYTES      smaller mappings are left alone
//   costs BASE POPULATE   ns of a fault of 4 KiB, and of populating 2 MiB: for what is told, no more
//   observe 1        no more than to tell what is touched
//   program ID       the rules that follow are for executables of this build-id (hex); *: for any
//   rule KIND WHICH ORDINAL FROM TO ACTION COST BENEFIT
//     KIND     mmap, heap, bss or data
//     WHICH    of mmap its size class, log2 of its bytes, or *; of bss and data NAME:BUILD-ID of the object, or - for the
//              executable; else -
//     ORDINAL  of mmap which of its class, in the order in which they are made, from 0, or *; else -. Private anonymous
//              mappings are counted, but for stacks and what the program wants of a kind
//     FROM TO  bytes from where the mapping begins, and there the nearest region; 0, `end`: where the mapping does
//     ACTION   huge: huge pages when it is touched; eager: populated too, ahead of that; base; leave: as the kernel does;
//              pool: huge pages of the pool, where the process has one (section 2) and it has them, else as huge
//     COST BENEFIT  ns, for what is told
// Of several rules that hold for an address the first counts. What no rule holds for is the pool's, or else looked at while
// it runs.
//
// What is touched is told as text, when it is given back, when the process ends or calls exec, and from time to time, a
// line for each item:
//   process PID TICKS NAMESPACE EXECUTABLE   what follows is its; the PID namespace in which PID is its number, 0: not known
//   KIND WHICH ORDINAL ORIGIN REGION PAGES…   as in rules; the address where the mapping begins, that of a region, and
//                  of it and each that follows the pages of 4 KiB that are there. Those of which none is are left out
//
// A region is an aligned piece of the address space that one huge page covers, 2 MiB. All numbers are little endian.
//
// clang-format on

#define ADVICE_MAGIC "BURADVC1"

enum { PLAN_VERSION = 1, REGION_BYTES = 2 << 20, ADVICE_DECISIONS = 1000, ADVICE_OBJECT = 48 };

enum advice_kind { ADVICE_MMAP, ADVICE_HEAP, ADVICE_BSS, ADVICE_DATA };

enum advice_action { ADVICE_LEAVE, ADVICE_HUGE, ADVICE_EAGER, ADVICE_BASE, ADVICE_POOL, ADVICE_AHEAD, ADVICE_DEMOTE };

enum advice_why {
    ADVICE_BY_RULE,
    ADVICE_IN_ORDER,  // regions were filled one after the other
    ADVICE_LIKE_SUCH, // mappings of this size were filled so before
    ADVICE_SPARSE,    // what was populated ahead was not filled
    ADVICE_NO_BLOCKS, // there are no free huge blocks
    ADVICE_NO_ROOM    // there is too little free memory
};

enum advice_left_alone {
    ADVICE_SANITIZER = 1, // built with one
    ADVICE_LIBC,          // it could not be patched
    ADVICE_DISABLED       // the program has switched huge pages off for itself
};

struct advice_decision {
    uint64_t t_ns; // since the process's runtime began
    uint64_t address;
    uint64_t from, bytes; // from where its mapping begins
    uint32_t kind, size_class;
    uint64_t ordinal;
    uint32_t action, why;
    uint64_t cost_ns, benefit_ns; // of the program's time, as expected; 0: not known
    char object[ADVICE_OBJECT];   // of bss and data, as in rules, cut; else empty
};

struct advice_told {
    char magic[8];  // ADVICE_MAGIC
    uint64_t bytes; // of this structure
    uint64_t pid, parent, ticks;
    uint64_t left_alone;      // enum advice_left_alone; 0: it was not
    uint64_t promoted;        // regions that were populated huge ahead
    uint64_t demoted;         // regions given back to base pages
    uint64_t populated_bytes; // ahead
    uint64_t advised_bytes;   // huge when touched
    uint64_t helper_cpu_ns;
    uint64_t ranges;                                // looked at
    uint64_t ranges_lost;                           // there were too many
    uint64_t rules_matched, rules_unmatched;        // of this program: which have held for something
    uint64_t rules_of_others;                       // of another program, or another build of this one
    uint64_t huge_bytes_peak, anonymous_bytes_peak; // as sampled
    uint64_t start_ns;                              // what the runtime took before the program began
    uint64_t decisions; // all; the last ADVICE_DECISIONS are in `decision`, number n at n modulo that
    uint64_t namespace; // the PID namespace in which `pid` is its number; 0: not known
    char executable[256];
    struct advice_decision decision[ADVICE_DECISIONS];
};

// clang-format off
//
// 4. Between the runtime and `bursar run`: which pages of files a program reads, writes and maps, and what each process used.
//
// Environment
//   BURSAR_REFERENCES  the path of a file that bursar has made, REFERENCE_FILE_BYTES long; every process of the command
//                      maps it
//
// The file holds a `reference_head`, at REFERENCE_RUNS_AT as many `reference_run` as REFERENCE_RUNS, and at
// REFERENCE_RING_AT as many `reference` as REFERENCE_RING. The latter are a ring: whoever writes takes the number `head`,
// unless it is REFERENCE_RING beyond `tail`, which is bursar's to move; then the reference is dropped and counted as
// `lost`. Number n stands at n modulo REFERENCE_RING, and is complete when its `what` has the turn of n.
//
//   what   bits 0 to 31   the file, a hash of device, inode and time of birth
//          bits 32 to 44  pages, at least 1; of REFERENCE_FILE: which part
//          bits 45 to 47  enum reference_kind
//          bits 48 to 63  turn: n / REFERENCE_RING + 1, its lower 16 bits
//   place  bits 0 to 39   the first page
//          bits 40 to 63  milliseconds on CLOCK_MONOTONIC, their lower 24 bits
//
// REFERENCE_FILE tells of which file a hash is, in parts whose `place` is: 0, the inode; 1, the device as major << 20 |
// minor in the lower 32 bits, and above the lower 32 bits of the time of birth in ns (0: not known); 2, a descriptor of it
// in the lower 32 bits, and above the process that has it. Before part 2, where bursar has set `wants_paths` or the file
// is in memory, and not each time that a process opens it: 3, the first eight bytes of its path, 4, the next eight, and so
// on up to a byte of 0.
//
// REFERENCE_PROCESS tells of a process what `enum process_part` says. In place of the file it has a number that the process
// gave itself when it began, and again when it became another program; in place of the pages, the part.
//
// Where bursar holds the page cache to a size and is behind, it says in `hold_until_ms`, milliseconds on CLOCK_MONOTONIC in
// their lower 32 bits, until when calls that read or write files have to wait, as in the kernel's reclaim; 0: they have not.
//
// Each thread has a `reference_run`, its own to write: the pages that it has referenced one after the other and that are
// not in the ring yet, and the bytes of all its calls that read and write, whatever they read (as `rchar` and `wchar` in
// /proc/PID/io). bursar reads them when the command has ended. Threads that find none left share the first one, which
// holds bytes only.
//
// clang-format on

#define REFERENCE_MAGIC "BURREFS1"

enum {
    REFERENCE_RING = 1 << 16,
    REFERENCE_RUNS = 1 << 12,
    REFERENCE_CLASSES = 16,
    REFERENCE_RUNS_AT = 4096,
    REFERENCE_RING_AT = 4096 + (64 << 12),
    REFERENCE_FILE_BYTES = 4096 + (64 << 12) + (16 << 16)
};

enum reference_kind {
    REFERENCE_READ,
    REFERENCE_WRITE,
    REFERENCE_FAULT, // through a mapping that the loader made; told at the end of the program, with the time of its
                     // begin
    REFERENCE_FILE,
    REFERENCE_MAPPED, // of a mapping that the program made: all its pages, whether they are touched or not
    REFERENCE_PROCESS,
    REFERENCE_REMOVED,  // no reference: all pages from this one to the end of the file are gone, and take no room
    REFERENCE_IN_MEMORY // no reference: a file in memory, on tmpfs or ramfs, that a process has opened and used; parts
                        // 0, 1 and 3 and on of REFERENCE_FILE are told before. `place` is as of part 2
};

// What the `place` of REFERENCE_PROCESS is. The first three are told when a program begins, and in the child of a fork;
// the others when it ends by itself, or is about to become another program. What could not be found out is left out.
enum process_part {
    PROCESS_PID,        // in its PID namespace; above the lower 32 bits that namespace, 0: not known
    PROCESS_PARENT,     // its number in the same namespace; 0: it is in another one
    PROCESS_BEGAN_NS,   // on CLOCK_MONOTONIC
    PROCESS_PEAK_BYTES, // the most that was resident of this program, by the kernel's word; less PROCESS_OWN
    PROCESS_RESIDENT,   // pages, the most of all times that it looked: at its end, and before it gave 1 MiB back; less
                        // PROCESS_OWN
    PROCESS_HEAP,       // of these, pages of neither files nor shared memory
    PROCESS_MOST_HEAP,  // pages of heap, the most of all times that it looked
    PROCESS_INHERITED,  // pages of heap that the child of a fork had when it began; told then
    PROCESS_SHARES,     // 1: it has mapped shared memory or a file in memory, and the rest may be that; 0: it has not
    PROCESS_OWN,        // pages of this library and of the memory that bursar shares, at the end
    PROCESS_USER_US,    // of the process, not of the program alone; so the next three
    PROCESS_SYSTEM_US,  //
    PROCESS_MINOR_FAULTS, //
    PROCESS_MAJOR_FAULTS, //
    PROCESS_NAME,         // of its program, 8 bytes
    PROCESS_NAME_REST,    //
    PROCESS_STATUS,       // by which it exits; PROCESS_GOES_ON: it becomes another program
    PROCESS_ENDED_NS,     // on CLOCK_MONOTONIC, the last part
    PROCESS_HEAP_AT       // pages of heap in the lower 32 bits when it looked, above these the milliseconds on
                          // CLOCK_MONOTONIC; told again and again, not of each look
};
enum { PROCESS_GOES_ON = 1 << 8 };

// Why pages are no references: they are not in the page cache, or not in that of this machine alone.
enum reference_class {
    REFERENCE_PAGE_CACHE, // they are
    REFERENCE_DIRECT,     // O_DIRECT
    REFERENCE_DAX,
    REFERENCE_TMPFS,
    REFERENCE_RAMFS,
    REFERENCE_HUGETLBFS,
    REFERENCE_NFS,
    REFERENCE_CIFS,
    REFERENCE_PLAN9,
    REFERENCE_FUSE,
    REFERENCE_CEPH,
    REFERENCE_AFS,
    REFERENCE_LUSTRE,
    REFERENCE_GPFS,
    REFERENCE_ZFS,
    REFERENCE_BEEGFS
};

struct reference {
    uint64_t what, place;
};

struct reference_run {
    uint32_t file, pages; // pages 0: nothing waits
    uint64_t first_page;
    uint32_t kind; // enum reference_kind
    uint32_t ms;   // when it began
    uint64_t read_bytes, written_bytes;
    uint64_t unused[3];
};

struct reference_head {
    char magic[8];                            // REFERENCE_MAGIC
    uint64_t bytes;                           // REFERENCE_FILE_BYTES
    uint64_t tail;                            // of the ring: what bursar has read
    uint64_t processes;                       // in which the runtime began, an exec counting anew
    uint64_t unpatched;                       // of these, those in which libc could not be patched
    uint64_t lost;                            // references that found no room
    uint64_t runs;                            // that threads have taken, or wanted
    uint64_t hold_until_ms;                   //
    uint64_t ended;                           // of `processes`: have told what the loader had mapped, at their end
    uint64_t with_io_uring;                   // of `ended`: had liburing loaded
    uint64_t wants_paths;                     // 1: bursar opens files itself
    uint64_t pipe_bytes;                      // by which pipes were enlarged, beyond what they hold by default
    uint64_t unused[4];                       // the rest of two lines of the processor's cache
    uint64_t head;                            // of the ring: what has been taken
    uint64_t unused_too[7];                   //
    uint64_t hidden_bytes[REFERENCE_CLASSES]; // by enum reference_class
};
