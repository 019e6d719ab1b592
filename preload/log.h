// clang-format off
//
// The log of one process: what changed, appended as it changes, readable after a kill at any point.
//
//   header  8 bytes  89 'B' 'U' 'R' 'L' 'O' 'G' 0A
//           u32 LE   version (1)
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
//   'T' totals    time, s reason, n count, then count times: n owner * 8 + kind, n RSS, n PSS. What is not there is as it
//                 was before. Reasons: start, timer, shrink, mark, init, initialized, finalize, fork, exec, exit
//   'U' touched   as 'T', by who touched it first; only with BURSAR_TOUCH. Of the owners, those whose object is 0,
//                 UNATTRIBUTED and OWN
//   'F' function  n id, n component, s name
//   'C' calls     time, n count, then count times: n function, n calls, n bytes got, n bytes given back, all since the log
//                 began
//   'D' durations time, n count, then count times: n function, n nanoseconds between entering and leaving it, since the log
//                 began; only with BURSAR_TIMES
//   'X' exchanged time, n count, then count times: n rank in the world + 1 (0: another world's), n messages, n bytes, all
//                 sent since the log began; only with BURSAR_COMM
//   'M' mark      time, s name: a phase begins
//   'N' note      s: what the reader should know, as a sentence
//   'E' end       time, s how: exit, exec; finalize, when the log was brought from another node
//
// Kinds of memory: see `enum kind`. The total of a process is the sum over its owners but OWN.
//
// clang-format on
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { HEAP, MAPPED, STACK, SHARED, PAGE_CACHE, HUGETLB, KINDS };

enum owner {
    UNATTRIBUTED, // what cannot be explained
    RETAINED,     // free in the allocator, but resident
    OWN,          // the runtime's
    OWNERS_BEGIN = 8,
    OWNERS = 128
};

// Opens a new log in the run directory, NAME.log or NAME.1.log …; false if that cannot be done, and nothing will be
// logged.
bool log_open(const char *directory, const char *name);

// The log is another process's, this one having been forked; what is logged goes nowhere until the next is opened.
void log_forget(void);

// One entry is made of pieces and then appended whole; of one thread at a time.
void log_begin(char kind);
void log_number(uint64_t value);
void log_string(const char *text);
void log_time(void);
void log_end(void);

// A note, formatted as `text_format` does.
void log_note(const char *format, ...);

// Whether what is logged goes somewhere.
bool log_is_open(void);

// Where it is, and how long.
const char *log_path(void);
uint64_t log_bytes(void);

// The log may grow to so many bytes; then one note is the last.
void log_limit(uint64_t bytes);
