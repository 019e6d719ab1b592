#include "eager.h"

#include <errno.h>

#include "arena.h"
#include "space.h"
#include "sys.h"
#include "told.h"
#include "vm.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { CELLS = 1 << 26 };

static uint64_t *marks; // for each 2 MiB of the address space, whether it is memory that a pool would have served

// What is larger than a huge page may never be touched, as the buffer of a sort; and populating a huge page takes as
// long as a fault on it.
void eager_populate(uint64_t begin, uint64_t end) {
    uint64_t first = up(begin, HUGE), last = end & -(uint64_t)HUGE;
    uint64_t began = now_ns();
    // All of it: else it would be several mappings, which mremap does not move.
    if (last > first)
        sys(SYS_madvise, begin, end - begin, MADV_HUGEPAGE);
    // Before Linux 5.14 there is no such advice; what is new is zero, and may be written so.
    if (end - begin <= HUGE && sys(SYS_madvise, begin, end - begin, MADV_POPULATE_WRITE) == -EINVAL)
        for (uint64_t at = begin; at < end; at += PAGE)
            __atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&told->populate_ns, now_ns() - began, __ATOMIC_RELAXED);
}

void *eager_mmap(void *at, size_t bytes, int flags) {
    const uint64_t rounded = up(bytes, PAGE);
    char *got = next_mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (got == MAP_FAILED)
        return got;
    uint64_t aligned = bytes >= HUGE && got != at && (uint64_t)got % HUGE ? space(rounded, HUGE) : 0;
    if (aligned) {
        char *there = next_mmap((void *)aligned, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
        if (there == MAP_FAILED) {
            sys(SYS_munmap, aligned, rounded);
        } else {
            next_munmap(got, bytes);
            got = there;
        }
    }
    if (!(flags & MAP_NORESERVE))
        eager_populate((uint64_t)got, (uint64_t)got + rounded);
    else if (bytes >= HUGE)
        sys(SYS_madvise, got, rounded, MADV_HUGEPAGE);
    return got;
}

static void mark(uint64_t begin, uint64_t end, bool demanded) {
    uint64_t cells = 0;
    for (uint64_t cell = begin / HUGE + (!demanded && begin % HUGE); cell * HUGE < end && cell < CELLS; cell++) {
        uint64_t bit = 1UL << cell % 64, *word = &marks[cell / 64];
        if (!demanded && !*word) {
            cell |= 63;
            continue;
        }
        uint64_t before = demanded ? __atomic_fetch_or(word, bit, __ATOMIC_RELAXED)
                                   : __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
        cells += (before & bit ? 1 : 0) ^ demanded;
    }
    if (cells)
        told_demand(demanded ? (int64_t)cells * HUGE : -(int64_t)cells * HUGE);
}

void eager_demand(uint64_t begin, uint64_t end) {
    if (!marks && !(marks = arena_pages(CELLS / 8)))
        return;
    mark(begin, end, true);
}

void eager_given_back(uint64_t begin, uint64_t end) {
    if (marks && end > begin)
        mark(begin, end, false);
}
