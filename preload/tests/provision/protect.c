// mprotect: what is protected faults, exactly, and keeps what it holds.
#include "check.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RW = PROT_READ | PROT_WRITE };

static void guard(size_t bytes, size_t from, size_t to) {
    char *at = map(bytes);
    size_t around = bytes < 8 * MIB ? bytes : 8 * MIB;
    fill(at, 0, bytes, 1);
    check(mprotect(at + from, to - from, PROT_NONE) == 0);
    if (to <= around)
        check_faults_only(at, around, from, to, false);
    check_filled(at, 0, from, 1);
    check_filled(at, to, bytes, 1);
    check(mprotect(at + from, to - from, PROT_READ) == 0);
    check_filled(at, 0, bytes, 1);
    if (to <= around)
        check_faults_only(at, around, from, to, true);
    check(mprotect(at + from, to - from, RW) == 0);
    fill(at, 0, bytes, 2);
    check_filled(at, 0, bytes, 2);
    // Unmapped and mapped again while it is protected.
    check(mprotect(at + from, to - from, PROT_NONE) == 0);
    unmap(at, bytes);
    check_gone(at, 0, bytes);
    at = map(bytes);
    check_zero(at, 0, bytes);
    fill(at, 0, bytes, 3);
    unmap(at, bytes);
}

CASE(guard_page_in_the_middle) {
    FOR_SIZES(bytes)
    guard(bytes, bytes / 2 & -PAGE, (bytes / 2 & -PAGE) + PAGE);
}

CASE(guard_pages_at_the_ends) {
    FOR_SIZES(bytes) {
        guard(bytes, 0, PAGE);
        guard(bytes, bytes - PAGE, bytes);
    }
}

CASE(parts_protected) {
    FOR_SIZES(bytes) {
        guard(bytes, bytes / 4 & -PAGE, bytes / 2 & -PAGE);
        guard(bytes, PAGE, bytes - PAGE);
    }
}

CASE(all_protected) {
    FOR_SIZES(bytes)
    guard(bytes, 0, bytes);
}

CASE(every_other_page_protected) {
    size_t bytes = 5 * MIB;
    char *at = map(bytes);
    fill(at, 0, bytes, 1);
    for (size_t offset = 0; offset < bytes; offset += 2 * PAGE)
        check(mprotect(at + offset, PAGE, PROT_NONE) == 0);
    for (size_t offset = 0; offset < bytes; offset += PAGE)
        check(signal_of_read(at + offset) == (offset / PAGE % 2 ? 0 : SIGSEGV));
    check(mprotect(at, bytes, RW) == 0);
    check_filled(at, 0, bytes, 1);
}

CASE(one_mprotect_over_two_mappings) {
    size_t bytes = 6 * MIB;
    char *space = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        check(mmap(space + i * bytes, bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    fill(space, 0, 2 * bytes, 1);
    check(mprotect(space + 5 * MIB, 2 * MIB, PROT_READ) == 0);
    check_faults_only(space, 2 * bytes, 5 * MIB, 7 * MIB, true);
    check_filled(space, 0, 2 * bytes, 1);
}

// A write barrier, as collectors have it: the first write to each page faults, and the handler lets it through.
static char *barred;
static size_t first_writes;

static void let_through(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    char *page = (char *)((uintptr_t)info->si_addr & -PAGE);
    first_writes++;
    check(page >= barred && page < barred + 6 * MIB && mprotect(page, PAGE, RW) == 0);
}

CASE(write_barrier) {
    barred = map(6 * MIB);
    fill(barred, 0, 6 * MIB, 1);
    check(mprotect(barred, 6 * MIB, PROT_READ) == 0);
    struct sigaction action = {.sa_sigaction = let_through, .sa_flags = SA_SIGINFO};
    check(sigaction(SIGSEGV, &action, NULL) == 0);
    for (size_t offset = 100; offset < 6 * MIB; offset += 2 * PAGE)
        ((volatile char *)barred)[offset]++;
    check(first_writes == 6 * MIB / PAGE / 2);
    for (size_t offset = 100; offset < 6 * MIB; offset += 2 * PAGE)
        barred[offset]--;
    check(first_writes == 6 * MIB / PAGE / 2);
    check_filled(barred, 0, 6 * MIB, 1);
}

CASE(protected_memory_given_back_is_zero) {
    char *at = map(6 * MIB);
    fill(at, 0, 6 * MIB, 1);
    check(mprotect(at + MIB, 4 * MIB, PROT_NONE) == 0);
    check(madvise(at + MIB, 4 * MIB, MADV_DONTNEED) == 0);
    check(mprotect(at + MIB, 4 * MIB, RW) == 0);
    check_zero(at, MIB, 5 * MIB);
    check_filled(at, 0, MIB, 1);
    check_filled(at, 5 * MIB, 6 * MIB, 1);
}

CASE(errors_of_mprotect) {
    char *at = map(8 * MIB);
    fill(at, 0, 8 * MIB, 1);
    check(mprotect(at, 0, PROT_NONE) == 0);
    check_error(mprotect(at + 1, PAGE, PROT_NONE), EINVAL);
    check_error(mprotect(at + MIB, PAGE, 0x40), EINVAL);
    check_error(mprotect(at, SIZE_MAX & -PAGE, PROT_READ), ENOMEM);
    check_error(mprotect(at, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL);
    check_filled(at, 0, 8 * MIB, 1);
    fill(at, 0, 8 * MIB, 2);
    unmap(at + 4 * MIB, 4 * MIB);
    check_error(mprotect(at + 2 * MIB, 4 * MIB, PROT_READ), ENOMEM);
    // What came before the hole is protected all the same.
    check(signal_of_write(at + 3 * MIB) == SIGSEGV && signal_of_write(at) == 0);
    check_filled(at, 0, 4 * MIB, 2);
}

CASE(maps_tell_the_protection) {
    char *at = map(6 * MIB), line[400];
    check(mprotect(at + 2 * MIB + PAGE, 2 * PAGE, PROT_NONE) == 0);
    size_t found = 0, guarded = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    check(file);
    while (fgets(line, sizeof line, file)) {
        char *from, *to, mode[5];
        check(sscanf(line, "%p-%p %4s", (void **)&from, (void **)&to, mode) == 3);
        from = from < at ? at : from;
        to = to > at + 6 * MIB ? at + 6 * MIB : to;
        if (from >= to)
            continue;
        if (!strncmp(mode, "rw-", 3))
            found += to - from;
        if (!strncmp(mode, "---", 3) && from == at + 2 * MIB + PAGE)
            guarded += to - from;
    }
    fclose(file);
    check(found == 6 * MIB - 2 * PAGE && guarded == 2 * PAGE);
}
