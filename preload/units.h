// The pool's memory as units: huge pages that are mapped where they are needed, and unmapped when nothing is left in
// them. Within a unit memory is given in pages of 4 KiB. Of one thread at a time.
#pragma once

#include "lease.h"
#include "runtime.h"

struct unit {
    uint64_t address; // where it is mapped; 0: it is free
    uint32_t live;    // pages of it that are in use
    uint32_t room;    // no run of free pages in it is longer
    uint32_t segment;
    uint8_t protection;
    bool alone;      // what is free in it is nobody else's: it is part of the heap
    bool not_forked; // a child has nothing there
};

extern struct unit *units; // 1 up

// Bytes of a unit; 0 as long as there is no pool.
#define UNIT lease_page_bytes

// The unit that is mapped at an address; 0: none. Of any thread, at any time.
uint32_t unit_at(uint64_t address);

// Where the first unit at or behind an address begins, if before `end`; else `end`. Of any thread.
uint64_t units_next(uint64_t address, uint64_t end);
static inline bool units_in(uint64_t begin, uint64_t end) {
    return units_next(begin, end) < end;
}

// How many are free; leases more when there are fewer. PASSED_REASONS, or why there are not so many.
enum passed units_have(uint64_t count);

// Maps so many free units, one behind another, nothing in use: at an address where nothing is, or (0) anywhere, or
// over what is there. NULL where that is not to be had.
enum place { PLACE_ANYWHERE, PLACE_IF_FREE, PLACE_OVER };
uint64_t units_map(uint64_t at, uint64_t count, enum place place);

// Takes pages of mapped units into use, zeroed.
void units_take(uint64_t begin, uint64_t end);

// A part of one unit, or all of it, reads as zero.
void units_zero(uint64_t begin, uint64_t end);

// Room for so many pages in units that are mapped already; 0: none.
uint64_t units_room(uint32_t pages);

// Whether all pages of a range are in use; whether any is.
bool units_live(uint64_t begin, uint64_t end);
bool units_any_live(uint64_t begin, uint64_t end);

// Gives pages back; units in which nothing is left are unmapped.
void units_release(uint64_t begin, uint64_t end);

// The same physical memory at another place, over what is there. The old one is to be unmapped by the caller. False:
// nothing has become of the old; what is at the new is nobody's.
bool units_move(uint64_t from, uint64_t to, uint64_t count);

// Another view of a unit, to read and write; NULL: none. Unmapped by the caller.
char *unit_view(uint32_t unit);

// How much of what is in use holds nothing but zeroes, by pieces of it: at most 128 MiB are read. Of any thread that
// has the exclusive lock.
uint64_t units_unwritten(void);

// Whether page `i` of a unit is in use.
bool unit_page_live(uint32_t unit, uint32_t i);

// What is mapped there now is not the pool's any more.
void unit_forget(uint32_t unit);

// In the child of a fork, when nothing of the pool is mapped any more.
void units_forget(void);
