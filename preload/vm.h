// Changes of the address space: the first chain. Whoever makes them, the program, its libraries or the allocator within
// libc itself, comes through libc's own functions, whose entries are patched.
#pragma once

#include <sys/types.h>

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
    USE_STACK,
    USE_BREAK // obtained by sbrk for something else than the allocator
};

// Patches libc's functions; again when somebody else has patched them since (Open MPI and UCX do).
void vm_patch(void);
void vm_detour(void);

// What was there before the runtime belongs to the application.
void vm_known(uint64_t begin, uint64_t end, uint8_t owner, enum use use);

// The ranges as they are, sorted by address; of one thread at a time, and good until called again.
const struct range *vm_ranges(uint32_t *count);

// Whether they are still so: nobody has changed any since, or was about to.
bool vm_ranges_hold(void);

// The first of sorted ranges that ends behind an address: if any holds it, it is this one. By halving.
uint32_t range_beyond(const struct range *ranges, uint32_t count, uint64_t address);

// libc's functions, as they were before they were patched; NULL: not patched.
extern void *(*next_mmap)(void *, size_t, int, int, int, off_t);
extern int (*next_munmap)(void *, size_t);
extern void *(*next_mremap)(void *, size_t, size_t, int, ...);
extern int (*next_mprotect)(void *, size_t, int);
extern int (*next_madvise)(void *, size_t, int);
extern int (*next_brk)(void *);
extern void *(*next_sbrk)(intptr_t);

// In the child: what other threads of the parent were about to note is lost.
void vm_forked(void);
