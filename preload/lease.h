// The pool's memory that this process has: segments, lent by the broker.
#pragma once

#include "abi.h"
#include "runtime.h"

struct segment {
    int file;
    uint64_t device, inode;
    uint64_t bytes;
    uint32_t first_unit; // the rest is of `units.c`
    uint64_t *bits;      // of each unit: which pages of it are in use, and then which are not zero any more
};

enum { SEGMENTS = 4096 };
extern struct segment segments[SEGMENTS];
extern uint32_t segment_count;

// What the pool has beside, when last heard of it; and what its addresses are multiples of, 0 as long as that is not
// known.
extern uint64_t lease_free_bytes, lease_page_bytes;

// Where the broker is, by the environment; before the program may change it.
void lease_begin(void);

// Whether there is a pool to ask.
bool lease_possible(void);

// Asks for more: at least so many bytes, or none. Why not, if so: PASSED_NO_POOL, PASSED_EXHAUSTED or PASSED_CAP;
// PASSED_REASONS when it was granted.
enum passed lease_more(uint64_t bytes);

// Only asks what there is.
void lease_ask(void);

// Whether a segment's descriptor is still what it was.
bool lease_holds(const struct segment *segment);

// Whether a descriptor is still what it was: the program may close what it has not opened, and the number be another's.
bool is_still(int file, uint64_t device, uint64_t inode);

// In the child of a fork: what is leased is the parent's.
void lease_forget(void);
