// Changes of the address space: the first chain. Whoever makes them, the program, its libraries or the allocator within
// libc itself, comes through libc's own functions, whose entries are patched.
#pragma once

#include "runtime.h"

// Who obtained a range of addresses, and how.
struct range {
    uint64_t begin, end;
    uint8_t owner;
    uint8_t use;
};

enum use {
    USE_MAPPED,
    USE_RESERVED,  // addresses rather than memory, so far
    USE_ALLOCATOR, // the allocator's: what is not a live block in it is retained
    USE_STACK
};

// Patches libc's functions; again when somebody else has patched them since (Open MPI and UCX do).
void vm_patch(void);

// What was there before the runtime belongs to the application.
void vm_known(uint64_t begin, uint64_t end, uint8_t owner, enum use use);

// The ranges as they are, sorted by address; of one thread at a time, and good until called again.
const struct range *vm_ranges(uint32_t *count);

// The first of sorted ranges that ends behind an address: if any holds it, it is this one. By halving.
uint32_t range_beyond(const struct range *ranges, uint32_t count, uint64_t address);

// In the child: what other threads of the parent were about to note is lost.
void vm_forked(void);
