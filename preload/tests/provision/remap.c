// mremap: grown, shrunk, moved, and what cannot be.
#include "check.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { RW = PROT_READ | PROT_WRITE, ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS };

CASE(grown_and_moved) {
    FOR_SIZES(bytes)
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t new_bytes = bytes + sizes[i];
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        char *moved = mremap(at, bytes, new_bytes, MREMAP_MAYMOVE);
        check(moved != MAP_FAILED);
        check_filled(moved, 0, bytes, 1);
        check_zero(moved, bytes, new_bytes);
        if (moved != at)
            check_gone(at, 0, moved > at && moved < at + bytes ? (size_t)(moved - at) : bytes);
        fill(moved, 0, new_bytes, 2);
        check_filled(moved, 0, new_bytes, 2);
        unmap(moved, new_bytes);
        check_gone(moved, 0, new_bytes);
    }
}

CASE(grown_step_by_step) {
    size_t bytes = 64 * KIB;
    char *at = map(bytes);
    fill(at, 0, bytes, 1);
    for (int i = 0; i < 40; i++) {
        size_t more = bytes + (i % 7 + 1) * 200 * KIB;
        at = mremap(at, bytes, more & -PAGE, MREMAP_MAYMOVE);
        check(at != MAP_FAILED);
        check_filled(at, 0, bytes, 1);
        check_zero(at, bytes, more & -PAGE);
        bytes = more & -PAGE;
        fill(at, 0, bytes, 1);
    }
}

CASE(grown_in_place_where_there_is_room) {
    // There is no other hole for what the runtime maps meanwhile.
    char *lowest = mmap(NULL, 1 * GIB, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    while ((char *)mmap(NULL, PAGE, PROT_NONE, ANONYMOUS, -1, 0) > lowest)
        continue;
    FOR_SIZES(bytes) {
        char *space = mmap(NULL, 2 * bytes, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
        unmap(space, 2 * bytes);
        check(mmap(space, bytes, RW, ANONYMOUS | MAP_FIXED, -1, 0) == space);
        fill(space, 0, bytes, 1);
        check(mremap(space, bytes, 2 * bytes, 0) == space);
        check_filled(space, 0, bytes, 1);
        check_zero(space, bytes, 2 * bytes);
        unmap(space, 2 * bytes);
    }
}

CASE(not_grown_in_place_where_there_is_none) {
    FOR_SIZES(bytes) {
        char *space = map(2 * bytes);
        fill(space, 0, 2 * bytes, 1);
        // The second half is another mapping.
        check(mmap(space + bytes, bytes, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0) == space + bytes);
        check_error(mremap(space, bytes, bytes + PAGE, 0), ENOMEM);
        check_filled(space, 0, bytes, 1);
        check_zero(space, bytes, 2 * bytes);
        unmap(space, 2 * bytes);
    }
}

CASE(shrunk) {
    FOR_SIZES(bytes)
    for (size_t less = PAGE; less < bytes; less = less * 5 & -PAGE) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        check(mremap(at, bytes, bytes - less, 0) == at);
        check_filled(at, 0, bytes - less, 1);
        check_gone(at, bytes - less, bytes);
        // What comes again is zero.
        char *again = mremap(at, bytes - less, bytes, MREMAP_MAYMOVE);
        check(again != MAP_FAILED);
        check_filled(again, 0, bytes - less, 1);
        check_zero(again, bytes - less, bytes);
        unmap(again, bytes);
    }
}

CASE(of_the_same_size) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        check(mremap(at, bytes, bytes, 0) == at);
        check(mremap(at, bytes, bytes, MREMAP_MAYMOVE) == at);
        check(mremap(at, bytes - 100, bytes - 3000, 0) == at);
        check_filled(at, 0, bytes, 1);
        unmap(at, bytes);
    }
}

CASE(moved_to_a_place) {
    FOR_SIZES(bytes)
    for (size_t i = 0; i < COUNT(sizes); i += 2) {
        size_t new_bytes = sizes[i];
        char *at = map(bytes), *there = map(new_bytes);
        fill(at, 0, bytes, 1);
        fill(there, 0, new_bytes, 2);
        check(mremap(at, bytes, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
        size_t kept = bytes < new_bytes ? bytes : new_bytes;
        check_filled(there, 0, kept, 1);
        check_zero(there, kept, new_bytes);
        check_gone(at, 0, bytes);
        fill(there, 0, new_bytes, 3);
        check_filled(there, 0, new_bytes, 3);
        unmap(there, new_bytes);
        check_gone(there, 0, new_bytes);
    }
}

CASE(moved_into_the_middle_of_another) {
    char *at = map(3 * MIB), *other = map(16 * MIB);
    fill(at, 0, 3 * MIB, 1);
    fill(other, 0, 16 * MIB, 2);
    char *there = other + 4 * MIB + PAGE;
    check(mremap(at, 3 * MIB, 3 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
    check_filled(there, 0, 3 * MIB, 1);
    check_filled(other, 0, 4 * MIB + PAGE, 2);
    check_filled(other, 7 * MIB + PAGE, 16 * MIB, 2);
    check_gone(at, 0, 3 * MIB);
}

CASE(moved_out_of_the_middle) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        size_t from = bytes / 4 & -PAGE, to = bytes / 2 & -PAGE;
        fill(at, 0, bytes, 1);
        char *moved = mremap(at + from, to - from, bytes, MREMAP_MAYMOVE);
        check(moved != MAP_FAILED && moved != at + from);
        check_filled(moved - from, from, to, 1);
        check_zero(moved, to - from, bytes);
        check_filled(at, 0, from, 1);
        check_filled(at, to, bytes, 1);
        check_gone(at, from, to);
        unmap(at, bytes);
        unmap(moved, bytes);
    }
}

CASE(moved_and_still_mapped) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        // With an address, which glibc up to 2.39 otherwise takes from whatever is there.
        char *moved = mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
        check(moved != MAP_FAILED && moved != at);
        check_filled(moved, 0, bytes, 1);
        check_zero(at, 0, bytes);
        fill(at, 0, bytes, 2);
        check_filled(moved, 0, bytes, 1);
        check_filled(at, 0, bytes, 2);
        unmap(at, bytes);
        unmap(moved, bytes);
    }
}

CASE(moved_with_its_protection) {
    char *at = map(6 * MIB);
    fill(at, 0, 6 * MIB, 1);
    check(mprotect(at, 6 * MIB, PROT_READ) == 0);
    char *there = map(8 * MIB), *moved = mremap(at, 6 * MIB, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, there);
    check(moved == there);
    check_filled(moved, 0, 6 * MIB, 1);
    check_zero(moved, 6 * MIB, 8 * MIB);
    check_faults_only(moved, 8 * MIB, 0, 8 * MIB, true);
}

CASE(shared_memory_mapped_twice_by_old_size_0) {
    char *at = mmap(NULL, 4 * MIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(at, 0, 4 * MIB, 1);
    char *again = mremap(at, 0, 4 * MIB, MREMAP_MAYMOVE);
    check(again != MAP_FAILED && again != at);
    check_filled(again, 0, 4 * MIB, 1);
    fill(again, 0, 4 * MIB, 2);
    check_filled(at, 0, 4 * MIB, 2);
}

CASE(errors_of_mremap) {
    char *at = map(8 * MIB), *there = map(16 * MIB);
    fill(at, 0, 8 * MIB, 1);
    check_error(mremap(at + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EINVAL);
    check_error(mremap(at, 8 * MIB, 0, MREMAP_MAYMOVE), EINVAL);
    check_error(mremap(at, 0, 8 * MIB, MREMAP_MAYMOVE), EINVAL);
    check_error(mremap(at, 8 * MIB, 8 * MIB, 0x80), EINVAL);
    check_error(mremap(at, 8 * MIB, 8 * MIB, MREMAP_FIXED, there), EINVAL);
    check_error(mremap(at, 8 * MIB, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, there + 1), EINVAL);
    check_error(mremap(at, 8 * MIB, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, at + 4 * MIB), EINVAL);
    check_error(mremap(at, 8 * MIB, 4 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL), EINVAL);
    check_error(mremap(at, 8 * MIB, (size_t)1 << 46, MREMAP_MAYMOVE), ENOMEM);
    check_filled(at, 0, 8 * MIB, 1);
    unmap(at + 4 * MIB, 4 * MIB);
    check_error(mremap(at + 4 * MIB, MIB, 2 * MIB, MREMAP_MAYMOVE), EFAULT);
    check_error(mremap(at + 2 * MIB, 4 * MIB, 8 * MIB, MREMAP_MAYMOVE), EFAULT);
    check_filled(at, 0, 4 * MIB, 1);
    check(mprotect(at + 2 * MIB, MIB, PROT_READ) == 0);
    check_error(mremap(at, 4 * MIB, 8 * MIB, MREMAP_MAYMOVE), EFAULT);
    check_filled(at, 0, 4 * MIB, 1);
}

CASE(realloc_keeps_what_is_there) {
    char *block = NULL;
    size_t before = 0;
    for (int i = 0; i < 60; i++) {
        size_t bytes = (i * 7919 % 61 + 1) * 512 * KIB;
        block = realloc(block, bytes);
        check(block);
        check_filled(block, 0, before < bytes ? before : bytes, 1);
        fill(block, 0, bytes, 1);
        before = bytes;
    }
    free(block);
}
