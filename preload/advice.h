// clang-format off
//
// Between the runtime and what is outside: what it is to advise the kernel about the program's memory, and what it
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
//              pool: huge pages of the pool, where the process has one (pool.h) and it has them, else as huge
//     COST BENEFIT  ns, for what is told
// Of several rules that hold for an address the first counts. What no rule holds for is the pool's, or else looked at while
// it runs.
//
// What is touched is told as text, when it is given back, when the process ends or calls exec, and from time to time, a
// line for each item:
//   process PID TICKS EXECUTABLE   what follows is its
//   KIND WHICH ORDINAL ORIGIN REGION PAGES…   as in rules; the address where the mapping begins, that of a region, and
//                  of it and each that follows the pages of 4 KiB that are there. Those of which none is are left out
//
// A region is an aligned piece of the address space that one huge page covers, 2 MiB. All numbers are little endian.
//
// clang-format on
#pragma once

#include <stdint.h>

enum { ADVICE_DECISIONS = 1000, ADVICE_OBJECT = 48 };

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
    char magic[8];  // "BURADVC1"
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
