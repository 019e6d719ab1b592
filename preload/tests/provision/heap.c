// brk, sbrk and what malloc makes of them.
#include "check.h"
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Where nothing of malloc's is above.
static char *top(void) {
    return (char *)(((uintptr_t)sbrk(0) + PAGE - 1) & -PAGE);
}

CASE(brk_grows_and_shrinks) {
    char *begin = top();
    size_t had = 0;
    check(brk(begin) == 0 && sbrk(0) == begin);
    for (int i = 0; i < 60; i++) {
        size_t bytes = (i * 7919 % 61) * 300 * KIB;
        bytes &= -PAGE;
        if (i % 2)
            check(brk(begin + bytes) == 0);
        else
            check(sbrk((intptr_t)bytes - (intptr_t)had) == begin + had);
        check(sbrk(0) == begin + bytes);
        if (bytes > had)
            check_zero(begin, had, bytes);
        check_filled(begin, 0, had < bytes ? had : bytes, 1);
        fill(begin, 0, bytes, 1);
        if (bytes < had)
            check_gone(begin, bytes, had);
        had = bytes;
    }
    check(brk(begin) == 0);
}

CASE(brk_by_a_few_bytes) {
    char *begin = sbrk(0);
    for (size_t bytes = 0; bytes < 3 * MIB; bytes += 1000) {
        check(sbrk(1000) == begin + bytes);
        memset(begin + bytes, bytes / 1000 % 255 + 1, 1000);
    }
    for (size_t bytes = 0; bytes < 3 * MIB; bytes += 1000)
        check(begin[bytes] == (char)(bytes / 1000 % 255 + 1) && begin[bytes + 999] == begin[bytes]);
    check(sbrk(0) > (void *)begin);
    check(brk(begin) == 0 && sbrk(0) == begin);
    // The page that the break is in stays; above it all is new.
    check(sbrk(3 * MIB) == begin);
    char *page = (char *)(((uintptr_t)begin + PAGE - 1) & -PAGE);
    check_zero(page, 0, 2 * MIB);
}

CASE(brk_in_large_steps) {
    char *begin = top();
    check(brk(begin) == 0);
    for (size_t bytes = 64 * MIB; bytes <= 256 * MIB; bytes += 64 * MIB) {
        check(sbrk(64 * MIB) == begin + bytes - 64 * MIB);
        check_zero(begin, bytes - 64 * MIB, bytes);
        fill(begin, bytes - 64 * MIB, bytes, 1);
    }
    check_filled(begin, 0, 256 * MIB, 1);
    check(brk(begin + 100 * MIB + 5 * PAGE) == 0);
    check_filled(begin, 0, 100 * MIB + 5 * PAGE, 1);
    check_gone(begin, 100 * MIB + 5 * PAGE, 128 * MIB);
    check(brk(begin) == 0);
}

CASE(brk_refused) {
    char *begin = sbrk(0);
    check_error(brk(begin + ((uintptr_t)1 << 46)), ENOMEM);
    check_error(sbrk((intptr_t)1 << 46), ENOMEM);
    check(sbrk(0) == begin);
    // A mapping in the way.
    char *page = top() + 16 * MIB;
    check(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == page);
    *page = 'x';
    check_error(sbrk(32 * MIB), ENOMEM);
    check(sbrk(0) == begin && *page == 'x');
    check(sbrk(8 * MIB) == begin);
    check(mprotect(page, PAGE, PROT_READ) == 0);
}

CASE(brk_memory_protected_and_given_back) {
    char *at = top();
    check(brk(at + 12 * MIB) == 0);
    fill(at, 0, 12 * MIB, 1);
    check(mprotect(at + 5 * MIB, PAGE, PROT_NONE) == 0);
    check_faults_only(at, 12 * MIB, 5 * MIB, 5 * MIB + PAGE, false);
    check(mprotect(at + 5 * MIB, PAGE, PROT_READ | PROT_WRITE) == 0);
    check(madvise(at + 3 * MIB, 4 * MIB, MADV_DONTNEED) == 0);
    check_zero(at, 3 * MIB, 7 * MIB);
    check_filled(at, 0, 3 * MIB, 1);
    check_filled(at, 7 * MIB, 12 * MIB, 1);
    // A hole in the heap, and a mapping in its place.
    unmap(at + 4 * MIB, 2 * MIB);
    check_gone(at, 4 * MIB, 6 * MIB);
    check(brk(at + 16 * MIB) == 0);
    check_zero(at, 12 * MIB, 16 * MIB);
    check_filled(at, 7 * MIB, 12 * MIB, 1);
    check(brk(at + 2 * MIB) == 0);
    check_filled(at, 0, 2 * MIB, 1);
    check_gone(at, 2 * MIB, 12 * MIB);
}

CASE(malloc_and_free_of_many) {
    enum { MANY = 4000 };
    static struct {
        char *at;
        size_t bytes;
    } blocks[MANY];
    uint64_t state = 1;
    for (int i = 0; i < 60000; i++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        size_t index = (state >> 33) % MANY;
        if (blocks[index].at) {
            check_filled(blocks[index].at, 0, blocks[index].bytes, index);
            free(blocks[index].at);
            blocks[index].at = NULL;
        } else {
            blocks[index].bytes = (state >> 40) % (index % 100 ? 4096 : 600 * KIB) & -8;
            blocks[index].at = malloc(blocks[index].bytes);
            check(blocks[index].at);
            fill(blocks[index].at, 0, blocks[index].bytes, index);
        }
        if (i % 20000 == 0)
            malloc_trim(0);
    }
}

CASE(calloc_is_zero_where_something_was) {
    for (int round = 0; round < 5; round++)
        FOR_SIZES(bytes) {
            char *block = malloc(bytes);
            check(block);
            memset(block, 0xff, bytes);
            free(block);
            block = calloc(bytes, 1);
            check(block);
            check_zero(block, 0, bytes);
            memset(block, 0xff, bytes);
            free(block);
        }
}

CASE(one_large_heap_without_mappings) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
    char *blocks[COUNT(sizes)];
    for (int round = 0; round < 4; round++) {
        FOR_SIZES(bytes) {
            blocks[size_index] = malloc(bytes);
            check(blocks[size_index]);
            fill(blocks[size_index], 0, bytes, round);
        }
        FOR_SIZES(bytes) {
            check_filled(blocks[size_index], 0, bytes, round);
            free(blocks[size_index]);
        }
        malloc_trim(0);
    }
}

CASE(aligned_allocation) {
    for (size_t alignment = 64; alignment <= 32 * MIB; alignment *= 8)
        FOR_SIZES(bytes) {
            void *block;
            check(posix_memalign(&block, alignment, bytes) == 0 && (uintptr_t)block % alignment == 0);
            fill(block, 0, bytes, 1);
            check_filled(block, 0, bytes, 1);
            free(block);
        }
}

CASE(malloc_of_too_much) {
    volatile size_t bytes = (size_t)1 << 46;
    errno = 0;
    check(!malloc(bytes) && errno == ENOMEM);
    char *block = malloc(16 * MIB);
    check(block);
    fill(block, 0, 16 * MIB, 1);
    check_filled(block, 0, 16 * MIB, 1);
}
