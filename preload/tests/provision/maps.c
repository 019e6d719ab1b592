// mmap and munmap: of anything, anywhere, in any part.
#include "check.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RW = PROT_READ | PROT_WRITE, ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS };

CASE(memory_is_zero) {
    char *at[COUNT(sizes)];
    FOR_SIZES(bytes) {
        at[size_index] = map(bytes);
        check((uintptr_t)at[size_index] % PAGE == 0);
        check_zero(at[size_index], 0, bytes);
        fill(at[size_index], 0, bytes, size_index);
    }
    FOR_SIZES(bytes)
    check_filled(at[size_index], 0, bytes, size_index);
}

CASE(memory_that_was_used_is_zero_again) {
    for (int round = 0; round < 4; round++)
        FOR_SIZES(bytes) {
            char *at = map(bytes);
            check_zero(at, 0, bytes);
            fill(at, 0, bytes, round);
            unmap(at, bytes);
        }
}

// From many ends at once: what is freed in parts is reused in parts, and is zero each time.
CASE(parts_that_were_used_are_zero_again) {
    enum { PIECES = 64 };
    char *at = map(PIECES * 128 * KIB), *again[PIECES];
    fill(at, 0, PIECES * 128 * KIB, 1);
    for (int i = 0; i < PIECES; i += 2)
        unmap(at + i * 128 * KIB, 128 * KIB);
    for (int i = 0; i < PIECES; i += 2) {
        again[i] = map(128 * KIB);
        check_zero(again[i], 0, 128 * KIB);
        fill(again[i], 0, 128 * KIB, i);
    }
    for (int i = 0; i < PIECES; i += 2) {
        check_filled(again[i], 0, 128 * KIB, i);
        check_filled(at, (i + 1) * 128 * KIB, (i + 2) * 128 * KIB, 1);
    }
}

CASE(lengths_are_rounded_to_pages) {
    size_t lengths[] = {1, 100 * KIB + 1, 2 * MIB - 1, 2 * MIB + 1, 16 * MIB - 4095};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        size_t whole = (lengths[i] + PAGE - 1) & -PAGE;
        char *at = map(lengths[i]);
        check_zero(at, 0, whole);
        fill(at, 0, whole, i);
        check_filled(at, 0, whole, i);
        unmap(at, lengths[i]);
        check_gone(at, 0, whole);
    }
}

static void unmap_part(size_t bytes, size_t from, size_t to) {
    char *at = map(bytes);
    fill(at, 0, bytes, from);
    unmap(at + from, to - from);
    check_gone(at, from, to);
    check_filled(at, 0, from, from);
    check_filled(at, to, bytes, from);
    fill(at, 0, from, 9);
    fill(at, to, bytes, 9);
    check_filled(at, 0, from, 9);
    check_filled(at, to, bytes, 9);
    // Again, though nothing is there any more.
    unmap(at + from, to - from);
    unmap(at, bytes);
    check_gone(at, 0, bytes);
}

CASE(munmap_of_the_head) {
    FOR_SIZES(bytes)
    for (size_t part = PAGE; part < bytes; part = part * 5 & -PAGE)
        unmap_part(bytes, 0, part);
}

CASE(munmap_of_the_tail) {
    FOR_SIZES(bytes)
    for (size_t part = PAGE; part < bytes; part = part * 5 & -PAGE)
        unmap_part(bytes, bytes - part, bytes);
}

CASE(munmap_of_the_middle) {
    FOR_SIZES(bytes)
    for (size_t part = PAGE; part < bytes / 2; part = part * 5 & -PAGE)
        unmap_part(bytes, bytes / 3 & -PAGE, (bytes / 3 & -PAGE) + part);
}

CASE(munmap_page_by_page) {
    size_t bytes = 5 * MIB;
    char *at = map(bytes);
    fill(at, 0, bytes, 1);
    // Backwards and forwards to the middle.
    for (size_t offset = 0; offset < bytes / 2; offset += PAGE) {
        unmap(at + offset, PAGE);
        unmap(at + bytes - offset - PAGE, PAGE);
        if (offset % (256 * KIB) == 0)
            check_filled(at, offset + PAGE, bytes - offset - PAGE, 1);
    }
    check_gone(at, 0, bytes);
}

CASE(munmap_of_several_mappings_and_holes_at_once) {
    char *space = mmap(NULL, 32 * MIB, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    unmap(space, 32 * MIB);
    char *first = mmap(space + MIB, 6 * MIB, RW, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    char *second = mmap(space + 9 * MIB, 6 * MIB, RW, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    check(first == space + MIB && second == space + 9 * MIB);
    fill(first, 0, 6 * MIB, 1);
    fill(second, 0, 6 * MIB, 2);
    unmap(first + 3 * MIB, 8 * MIB);
    check_gone(first, 3 * MIB, 6 * MIB);
    check_gone(second, 0, 3 * MIB);
    check_filled(first, 0, 3 * MIB, 1);
    check_filled(second, 3 * MIB, 6 * MIB, 2);
}

// What mmap chose itself, one beside the other, given back by one call.
CASE(munmap_of_neighbours_at_once) {
    char *one = map(6 * MIB), *other = map(6 * MIB);
    char *low = one < other ? one : other, *high = one < other ? other : one;
    fill(low, 0, 6 * MIB, 1);
    fill(high, 0, 6 * MIB, 2);
    if (low + 6 * MIB != high)
        skip("the two are apart");
    unmap(low + 2 * MIB, 8 * MIB);
    check_gone(low, 2 * MIB, 10 * MIB);
    check_filled(low, 0, 2 * MIB, 1);
    check_filled(high, 4 * MIB, 6 * MIB, 2);
}

static void map_over(size_t bytes, size_t from, size_t to) {
    char *at = map(bytes);
    fill(at, 0, bytes, 1);
    check(mmap(at + from, to - from, RW, ANONYMOUS | MAP_FIXED, -1, 0) == at + from);
    check_zero(at, from, to);
    check_filled(at, 0, from, 1);
    check_filled(at, to, bytes, 1);
    fill(at, from, to, 2);
    check_filled(at, 0, from, 1);
    check_filled(at, from, to, 2);
    check_filled(at, to, bytes, 1);
    check(mmap(at + from, to - from, PROT_NONE, ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == at + from);
    for (size_t offset = from; offset < to; offset += PAGE)
        check(signal_of_read(at + offset) == SIGSEGV);
    check_filled(at, 0, from, 1);
    check_filled(at, to, bytes, 1);
    unmap(at, bytes);
    check_gone(at, 0, bytes);
}

CASE(fixed_over_the_middle) {
    FOR_SIZES(bytes)
    for (size_t part = PAGE; part < bytes / 2; part = part * 5 & -PAGE)
        map_over(bytes, bytes / 3 & -PAGE, (bytes / 3 & -PAGE) + part);
}

CASE(fixed_over_all) {
    FOR_SIZES(bytes)
    map_over(bytes, 0, bytes);
}

static void map_file_over(int kind) {
    int file = memfd_create("file", 0);
    check(file >= 0 && ftruncate(file, 8 * MIB) == 0);
    char *whole = mmap(NULL, 8 * MIB, RW, MAP_SHARED, file, 0);
    fill(whole, 0, 8 * MIB, 5);
    FOR_SIZES(bytes) {
        size_t part = bytes / 4 & -PAGE, from = part + PAGE;
        part = part > 6 * MIB ? 6 * MIB : part;
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        check(mmap(at + from, part, RW, kind | MAP_FIXED, file, MIB) == at + from);
        check(!memcmp(at + from, whole + MIB, part));
        check_filled(at, 0, from, 1);
        check_filled(at, from + part, bytes, 1);
        at[from] = 'x';
        check((whole[MIB] == 'x') == (kind == MAP_SHARED));
        fill(whole, 0, 8 * MIB, 5);
        unmap(at, bytes);
        check_gone(at, 0, bytes);
    }
    check_filled(whole, 0, 8 * MIB, 5);
}

CASE(private_file_over_the_middle) {
    map_file_over(MAP_PRIVATE);
}

CASE(shared_file_over_the_middle) {
    map_file_over(MAP_SHARED);
}

CASE(fixed_noreplace_where_something_is) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        int flags = ANONYMOUS | MAP_FIXED_NOREPLACE;
        check_error(mmap(at, bytes, RW, flags, -1, 0), EEXIST);
        check_error(mmap(at + (bytes / 2 & -PAGE), PAGE, RW, flags, -1, 0), EEXIST);
        check_error(mmap(at + bytes - PAGE, 2 * MIB, RW, flags, -1, 0), EEXIST);
        check_filled(at, 0, bytes, 1);
        unmap(at, bytes);
    }
}

CASE(fixed_noreplace_where_something_was) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        size_t from = bytes / 4 & -PAGE, to = 3 * bytes / 4 & -PAGE;
        unmap(at + from, to - from);
        check(mmap(at + from, to - from, RW, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at + from);
        check_zero(at, from, to);
        fill(at, from, to, 2);
        check_filled(at, 0, from, 1);
        check_filled(at, from, to, 2);
        check_filled(at, to, bytes, 1);
        unmap(at, bytes);
    }
}

CASE(hint_where_something_was) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        unmap(at, bytes);
        char *again = mmap(at, bytes, RW, ANONYMOUS, -1, 0);
        check(again == at);
        check_zero(again, 0, bytes);
        unmap(again, bytes);
    }
}

CASE(hint_far_away) {
    char *hints[] = {(char *)0x200000000000, (char *)0x300000000000 + 64 * KIB, (char *)0x10000000000 + MIB + PAGE};
    for (size_t i = 0; i < COUNT(hints); i++)
        FOR_SIZES(bytes) {
            char *at = mmap(hints[i], bytes, RW, ANONYMOUS, -1, 0);
            check(at == hints[i]);
            check_zero(at, 0, bytes);
            fill(at, 0, bytes, i);
            check_filled(at, 0, bytes, i);
            unmap(at, bytes);
            check(mmap(hints[i], bytes, RW, ANONYMOUS | MAP_FIXED, -1, 0) == hints[i]);
            check_zero(at, 0, bytes);
            unmap(at, bytes);
        }
}

CASE(hint_where_something_is) {
    char *at = map(16 * MIB);
    fill(at, 0, 16 * MIB, 1);
    char *other = mmap(at + MIB, 4 * MIB, RW, ANONYMOUS, -1, 0);
    check(other != MAP_FAILED && (other + 4 * MIB <= at || other >= at + 16 * MIB));
    fill(other, 0, 4 * MIB, 2);
    check_filled(at, 0, 16 * MIB, 1);
    check((other = mmap(at + 7, 4 * MIB, RW, ANONYMOUS, -1, 0)) != MAP_FAILED && (uintptr_t)other % PAGE == 0);
}

// As mimalloc, jemalloc and others do it: more than is wanted, then the ends are given back.
CASE(trimmed_to_an_alignment) {
    for (size_t alignment = 64 * KIB; alignment <= 64 * MIB; alignment *= 4) {
        size_t bytes = 4 * MIB;
        char *at = map(bytes + alignment);
        char *aligned = (char *)(((uintptr_t)at + alignment - 1) & -alignment);
        if (aligned > at)
            unmap(at, aligned - at);
        unmap(aligned + bytes, at + alignment - aligned);
        check_zero(aligned, 0, bytes);
        fill(aligned, 0, bytes, alignment);
        check_filled(aligned, 0, bytes, alignment);
        check_gone(at, 0, aligned - at);
        check_gone(aligned, bytes, bytes + (at + alignment - aligned));
        unmap(aligned, bytes);
    }
}

CASE(noreserve_of_256_gib_touched_here_and_there) {
    size_t bytes = 256 * GIB;
    char *at = mmap(NULL, bytes, RW, ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(at != MAP_FAILED);
    for (size_t i = 0; i < 64; i++)
        fill(at + i * 4 * GIB, i * PAGE, i * PAGE + 8 * KIB, i);
    for (size_t i = 0; i < 64; i++) {
        check_filled(at + i * 4 * GIB, i * PAGE, i * PAGE + 8 * KIB, i);
        check_zero(at + i * 4 * GIB, (i + 2) * PAGE, (i + 3) * PAGE);
    }
    check(madvise(at, 8 * GIB, MADV_DONTNEED) == 0);
    check_zero(at + 4 * GIB, PAGE, PAGE + 8 * KIB);
    unmap(at, bytes);
    check_gone(at, 0, PAGE);
    check_gone(at, bytes - PAGE, bytes);
}

CASE(noreserve_like_any_other) {
    FOR_SIZES(bytes) {
        char *at = mmap(NULL, bytes, RW, ANONYMOUS | MAP_NORESERVE, -1, 0);
        check(at != MAP_FAILED);
        check_zero(at, 0, bytes);
        fill(at, 0, bytes, 1);
        check(madvise(at, bytes / 2 & -PAGE, MADV_DONTNEED) == 0);
        check_zero(at, 0, bytes / 2 & -PAGE);
        check_filled(at, bytes / 2 & -PAGE, bytes, 1);
        unmap(at, bytes);
        check_gone(at, 0, bytes);
    }
}

// As glibc's arenas grow and shrink: aligned within twice their size, and made accessible from the front.
CASE(reservation_carved_by_mprotect) {
    size_t bytes = 64 * MIB;
    char *space = mmap(NULL, 2 * bytes, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(space != MAP_FAILED);
    char *at = (char *)(((uintptr_t)space + bytes - 1) & -bytes);
    if (at > space)
        unmap(space, at - space);
    unmap(at + bytes, space + bytes - at);
    size_t steps[] = {132 * KIB, 1 * MIB, 2 * MIB, 5 * MIB + PAGE, 24 * MIB, 64 * MIB}, size = 0;
    for (size_t i = 0; i < COUNT(steps); i++) {
        check(mprotect(at + size, steps[i] - size, RW) == 0);
        check_zero(at, size, steps[i]);
        fill(at, size, steps[i], 1);
        check_filled(at, 0, steps[i], 1);
        size = steps[i];
        if (size < bytes)
            check(signal_of_read(at + size) == SIGSEGV && signal_of_write(at + bytes - 1) == SIGSEGV);
    }
    // Shrinking, as with secure mode: mapped over, so that what comes again is zero.
    check(mmap(at + 3 * MIB, bytes - 3 * MIB, PROT_NONE, ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == at + 3 * MIB);
    check(signal_of_read(at + 3 * MIB) == SIGSEGV);
    check_filled(at, 0, 3 * MIB, 1);
    check(mprotect(at + 3 * MIB, 8 * MIB, RW) == 0);
    check_zero(at, 3 * MIB, 11 * MIB);
    check_filled(at, 0, 3 * MIB, 1);
    unmap(at, bytes);
}

// As Java commits and uncommits its heap, and Go its arenas.
CASE(reservation_carved_by_mapping_over) {
    size_t bytes = 1 * GIB, part = 32 * MIB;
    char *at = mmap(NULL, bytes, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(at != MAP_FAILED);
    for (size_t round = 0; round < 3; round++)
        for (size_t offset = round * 2 * MIB; offset + part <= bytes; offset += 256 * MIB) {
            check(mmap(at + offset, part, RW, ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == at + offset);
            check_zero(at + offset, 0, part);
            fill(at + offset, 0, part, offset);
            check(signal_of_read(at + offset + part) == SIGSEGV);
            check_filled(at + offset, 0, part, offset);
            check(mmap(at + offset, part, PROT_NONE, ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == at + offset);
            check(signal_of_read(at + offset) == SIGSEGV);
        }
    unmap(at, bytes);
}

CASE(many_mappings_at_once) {
    enum { MANY = 400 };
    char *at[MANY];
    for (size_t i = 0; i < MANY; i++) {
        at[i] = map((i % 40 + 1) * 16 * KIB);
        check_zero(at[i], 0, (i % 40 + 1) * 16 * KIB);
        fill(at[i], 0, (i % 40 + 1) * 16 * KIB, i);
    }
    for (size_t i = 0; i < MANY; i += 2)
        unmap(at[i], (i % 40 + 1) * 16 * KIB);
    for (size_t i = 1; i < MANY; i += 2)
        check_filled(at[i], 0, (i % 40 + 1) * 16 * KIB, i);
}

CASE(other_kinds_of_mapping) {
    int kinds[] = {MAP_POPULATE, MAP_LOCKED, MAP_STACK, MAP_NONBLOCK | MAP_POPULATE, MAP_32BIT, MAP_GROWSDOWN};
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t bytes = 64 * KIB; bytes <= 4 * MIB; bytes *= 4) {
            char *at = mmap(NULL, bytes, RW, ANONYMOUS | kinds[i], -1, 0);
            check(at != MAP_FAILED);
            check(kinds[i] != MAP_32BIT || (uintptr_t)at + bytes <= (uintptr_t)1 << 31);
            check_zero(at, 0, bytes);
            fill(at, 0, bytes, i);
            check_filled(at, 0, bytes, i);
            unmap(at, bytes);
            check_gone(at, 0, bytes);
        }
}

CASE(memory_that_is_only_read) {
    FOR_SIZES(bytes) {
        char *at = mmap(NULL, bytes, PROT_READ, ANONYMOUS, -1, 0);
        check(at != MAP_FAILED);
        check_zero(at, 0, bytes);
        check_faults_only(at, bytes < 4 * MIB ? bytes : 4 * MIB, 0, bytes, true);
        check(mprotect(at, bytes, RW) == 0);
        fill(at, 0, bytes, 1);
        check_filled(at, 0, bytes, 1);
        unmap(at, bytes);
    }
}

#ifdef __x86_64__
static void check_runs(char *code) {
    memcpy(code, "\xb8\x2a\x00\x00\x00\xc3", 6); // mov $42,%eax; ret
    check(((int (*)(void))code)() == 42);
}

CASE(code_can_be_run_where_it_was_asked_for) {
    FOR_SIZES(bytes) {
        char *at = mmap(NULL, bytes, RW | PROT_EXEC, ANONYMOUS, -1, 0);
        check(at != MAP_FAILED);
        check_runs(at + bytes / 2);
        unmap(at, bytes);
        at = map(bytes);
        fill(at, 0, bytes, 1);
        size_t middle = bytes / 2 & -PAGE;
        check(mprotect(at + middle, PAGE, RW | PROT_EXEC) == 0);
        check_runs(at + middle);
        check_filled(at, 0, middle, 1);
        check_filled(at, middle + PAGE, bytes, 1);
        unmap(at, bytes);
    }
}
#endif

CASE(errors_of_mmap) {
    check_error(mmap(NULL, 0, RW, ANONYMOUS, -1, 0), EINVAL);
    check_error(mmap(NULL, SIZE_MAX, RW, ANONYMOUS, -1, 0), ENOMEM);
    check_error(mmap(NULL, SIZE_MAX - PAGE + 1, RW, ANONYMOUS, -1, 0), ENOMEM);
    check_error(mmap(NULL, (size_t)1 << 47, RW, ANONYMOUS | MAP_NORESERVE, -1, 0), ENOMEM);
    check_error(mmap(NULL, 4 * MIB, RW, MAP_ANONYMOUS, -1, 0), EINVAL);
    check_error(mmap(NULL, 4 * MIB, RW, MAP_PRIVATE, -1, 0), EBADF);
    check_error(mmap(NULL, 4 * MIB, RW, ANONYMOUS, -1, 1), EINVAL);
    check_error(mmap((char *)0x200000000001, 4 * MIB, RW, ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
    check_error(mmap((char *)((uintptr_t)1 << 56), 4 * MIB, RW, ANONYMOUS | MAP_FIXED, -1, 0), ENOMEM);
    // More than there is: with heuristic overcommit this is refused at once.
    check_error(mmap(NULL, 64 * 1024 * GIB, RW, ANONYMOUS, -1, 0), ENOMEM);
    // A descriptor is not looked at.
    char *at = mmap(NULL, 4 * MIB, RW, ANONYMOUS, 12345, 8 * PAGE);
    check(at != MAP_FAILED);
    unmap(at, 4 * MIB);
}

CASE(errors_of_munmap) {
    char *at = map(8 * MIB);
    fill(at, 0, 8 * MIB, 1);
    check_error(munmap(at, 0), EINVAL);
    check_error(munmap(at + 1, PAGE), EINVAL);
    check_error(munmap(at + 3 * MIB + 100, 2 * MIB), EINVAL);
    check_error(munmap(at, SIZE_MAX), EINVAL);
    check_error(munmap(at, (size_t)1 << 60), EINVAL);
    check_error(munmap((char *)((uintptr_t)1 << 60), PAGE), EINVAL);
    check_filled(at, 0, 8 * MIB, 1);
}

CASE(errno_is_left_alone_by_what_succeeds) {
    errno = 4711;
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        check(mprotect(at, PAGE, PROT_READ) == 0 && madvise(at, bytes, MADV_DONTNEED) == 0);
        check((at = mremap(at, PAGE, PAGE, 0)) != MAP_FAILED);
        unmap(at, bytes);
    }
    check(errno == 4711);
}
