// Totals: every resident page of the process, divided among its owners. Exact when made; between two of them, bounded
// by what is known of blocks and mappings.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"

// Scans all resident memory and logs what has changed, with one of LOG_REASONS (abi.h). Takes several milliseconds, and
// some ten per GiB. Where another thread scans, waits for it first. False if it cannot be done.
bool reconcile(enum log_reason reason);

// The same before memory is given back of which there has never been as much, unless that has cost more than a fiftieth
// of the time already.
bool reconcile_at_a_peak(void);

// Logs what heap has been obtained since the last look, in microseconds: a look is dear, and who is killed before the
// next tells nothing any more.
void reconcile_growth(void);

// And before a child shares it, with the same patience.
void reconcile_before_fork(void);

// And before exec replaces the program: the last look there is, or another thread's would follow while the kernel still
// reads the new program, and tell nothing of an end. Looks go on once exec has failed.
void reconcile_before_exec(void);
void reconcile_exec_failed(void);

// The first look at what fork made, whose log `open` begins: in one turn, so that exec comes before both or after both.
enum begun {
    BEGINS_LATER, // unless exec, which is under way, fails
    HAS_BEGUN,
    NEVER_BEGINS, // `open` has failed
};
enum begun reconcile_begin(bool (*open)(void));

// A phase begins.
void mark_phase(const char *name);

// What all of them have cost, in ns of CPU time.
uint64_t reconcile_spent_ns(void);

// The process is a new one, with a log of its own.
void reconcile_forget(void);
