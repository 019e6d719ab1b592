// madvise: what gives memory back gives back exactly that, and what only advises changes nothing.
#include "check.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
enum { MADV_GUARD_INSTALL = 102, MADV_GUARD_REMOVE };
#endif

static void give_back(size_t bytes, size_t from, size_t to, int advice) {
    char *at = map(bytes);
    fill(at, 0, bytes, 1);
    for (int round = 0; round < 2; round++) {
        check(madvise(at + from, to - from, advice) == 0);
        check_zero(at, from, to);
        check_filled(at, 0, from, 1);
        check_filled(at, to, bytes, 1);
        fill(at, from, to, 1);
        check_filled(at, 0, bytes, 1);
    }
    unmap(at, bytes);
}

CASE(dontneed_zeroes_exactly_there) {
    FOR_SIZES(bytes) {
        give_back(bytes, 0, bytes, MADV_DONTNEED);
        give_back(bytes, 0, PAGE, MADV_DONTNEED);
        give_back(bytes, bytes - PAGE, bytes, MADV_DONTNEED);
        give_back(bytes, bytes / 2 & -PAGE, (bytes / 2 & -PAGE) + PAGE, MADV_DONTNEED);
        give_back(bytes, bytes / 4 & -PAGE, bytes / 2 & -PAGE, MADV_DONTNEED);
        give_back(bytes, PAGE, bytes - PAGE, MADV_DONTNEED);
    }
}

CASE(dontneed_of_a_length_within_a_page) {
    char *at = map(6 * MIB);
    fill(at, 0, 6 * MIB, 1);
    check(madvise(at + MIB, 2 * MIB + 5, MADV_DONTNEED) == 0);
    check_zero(at, MIB, 3 * MIB + PAGE);
    check_filled(at, 0, MIB, 1);
    check_filled(at, 3 * MIB + PAGE, 6 * MIB, 1);
}

CASE(dontneed_over_several_mappings) {
    char *space = mmap(NULL, 12 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < 2; i++)
        check(mmap(space + i * 6 * MIB, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                   0) == space + i * 6 * MIB);
    fill(space, 0, 12 * MIB, 1);
    check(mprotect(space + 5 * MIB, PAGE, PROT_READ) == 0);
    check(madvise(space + 3 * MIB, 6 * MIB, MADV_DONTNEED) == 0);
    check_zero(space, 3 * MIB, 9 * MIB);
    check_filled(space, 0, 3 * MIB, 1);
    check_filled(space, 9 * MIB, 12 * MIB, 1);
}

// Each page holds what it held, or zeroes; and what is written afterwards stays.
CASE(free_keeps_or_zeroes_each_page) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        size_t from = bytes / 4 & -PAGE, to = bytes / 2 & -PAGE;
        fill(at, 0, bytes, 1);
        check(madvise(at + from, to - from, MADV_FREE) == 0);
        for (size_t offset = from; offset < to; offset += PAGE)
            if (*(uint64_t *)(at + offset))
                check_filled(at, offset, offset + PAGE, 1);
            else
                check_zero(at, offset, offset + PAGE);
        check_filled(at, 0, from, 1);
        check_filled(at, to, bytes, 1);
        fill(at, from, to, 2);
        check_filled(at, from, to, 2);
        unmap(at, bytes);
    }
}

CASE(advice_changes_nothing) {
    int advice[] = {MADV_NORMAL,     MADV_RANDOM,    MADV_SEQUENTIAL,  MADV_WILLNEED,       MADV_HUGEPAGE,
                    MADV_NOHUGEPAGE, MADV_COLD,      MADV_PAGEOUT,     MADV_POPULATE_READ,  MADV_DONTDUMP,
                    MADV_DODUMP,     MADV_MERGEABLE, MADV_DOFORK,      MADV_POPULATE_WRITE, MADV_KEEPONFORK,
                    MADV_DONTFORK,   MADV_DOFORK,    MADV_UNMERGEABLE, MADV_NORMAL,         MADV_WIPEONFORK,
                    MADV_KEEPONFORK, MADV_NOHUGEPAGE};
    FOR_SIZES(bytes) {
        char *at = map(bytes), *small = map(PAGE);
        fill(at, 0, bytes, 1);
        for (size_t i = 0; i < COUNT(advice); i++) {
            // A page by itself is the kernel's own: what it says there it says here.
            int plain = madvise(small, PAGE, advice[i]), plain_error = plain ? errno : 0;
            int all = madvise(at, bytes, advice[i]), error = all ? errno : 0;
            check(all == plain && error == plain_error);
            check(madvise(at + (bytes / 2 & -PAGE), PAGE, advice[i]) == plain);
            check_filled(at, 0, bytes, 1);
        }
        fill(at, 0, bytes, 2);
        check_filled(at, 0, bytes, 2);
        unmap(at, bytes);
    }
}

CASE(populate_makes_present) {
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        static unsigned char there[16384];
        check(madvise(at, bytes, MADV_POPULATE_WRITE) == 0);
        check(mincore(at, bytes, there) == 0);
        for (size_t i = 0; i < bytes / PAGE; i++)
            check(there[i] & 1);
        check_zero(at, 0, bytes);
        check(mprotect(at, PAGE, PROT_NONE) == 0);
        check_error(madvise(at, bytes, MADV_POPULATE_WRITE), EINVAL);
        unmap(at, bytes);
    }
}

CASE(guards_by_madvise) {
    char *small = map(PAGE);
    if (madvise(small, PAGE, MADV_GUARD_INSTALL))
        skip("this kernel has no MADV_GUARD_INSTALL");
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        size_t middle = bytes / 2 & -PAGE;
        fill(at, 0, bytes, 1);
        check(madvise(at + middle, 2 * PAGE, MADV_GUARD_INSTALL) == 0);
        check(signal_of_read(at + middle) == SIGSEGV && signal_of_write(at + middle + PAGE) == SIGSEGV);
        check(signal_of_read(at + middle - 1) == 0 && signal_of_read(at + middle + 2 * PAGE) == 0);
        check(madvise(at + middle, 2 * PAGE, MADV_GUARD_REMOVE) == 0);
        check_zero(at, middle, middle + 2 * PAGE);
        check_filled(at, 0, middle, 1);
        check_filled(at, middle + 2 * PAGE, bytes, 1);
        unmap(at, bytes);
    }
}

CASE(errors_of_madvise) {
    char *at = map(8 * MIB);
    fill(at, 0, 8 * MIB, 1);
    check(madvise(at, 0, MADV_DONTNEED) == 0);
    check_error(madvise(at + 1, PAGE, MADV_DONTNEED), EINVAL);
    check_error(madvise(at, PAGE, 4711), EINVAL);
    check_error(madvise(at, SIZE_MAX, MADV_DONTNEED), EINVAL);
    check_error(madvise(at, 2 * MIB, MADV_REMOVE), EINVAL);
    check_filled(at, 0, 8 * MIB, 1);
    unmap(at + 2 * MIB, 2 * MIB);
    // The hole is told, and what is around it is given back all the same.
    check_error(madvise(at, 8 * MIB, MADV_DONTNEED), ENOMEM);
    check_zero(at, 0, 2 * MIB);
    check_zero(at, 4 * MIB, 8 * MIB);
    check_error(madvise(at + 2 * MIB, PAGE, MADV_DONTNEED), ENOMEM);
    check_error(madvise(at + 2 * MIB, PAGE, MADV_WILLNEED), ENOMEM);
}

CASE(posix_madvise_changes_nothing) {
    char *at = map(4 * MIB);
    fill(at, 0, 4 * MIB, 1);
    check(posix_madvise(at, 4 * MIB, POSIX_MADV_DONTNEED) == 0);
    check(posix_madvise(at, 4 * MIB, POSIX_MADV_WILLNEED) == 0);
    check_filled(at, 0, 4 * MIB, 1);
}

CASE(mlock_and_munlock) {
    char *at = map(6 * MIB);
    fill(at, 0, 6 * MIB, 1);
    if (mlock(at, 6 * MIB) && (errno == ENOMEM || errno == EPERM))
        skip("so much may not be locked");
    check(munlock(at + MIB, PAGE) == 0 && munlock(at, 6 * MIB) == 0);
    check(mlock(at + MIB + 7, PAGE) == 0);
    check_error(madvise(at, 6 * MIB, MADV_DONTNEED), EINVAL);
    check_filled(at, MIB, 6 * MIB, 1);
    check_zero(at, 0, MIB);
    check(munlock(at, 6 * MIB) == 0);
    check(mlock2(at, 6 * MIB, MLOCK_ONFAULT) == 0 && munlock(at, 6 * MIB) == 0);
    unmap(at + 3 * MIB, MIB);
    check_error(mlock(at, 6 * MIB), ENOMEM);
    check_filled(at, MIB, 3 * MIB, 1);
    unmap(at, 6 * MIB);
}

CASE(mlockall_and_munlockall) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        skip("so much may not be locked");
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        check_zero(at, 0, bytes);
        fill(at, 0, bytes, 1);
        check_filled(at, 0, bytes, 1);
        unmap(at, bytes);
    }
    check(munlockall() == 0);
    char *at = map(4 * MIB);
    fill(at, 0, 4 * MIB, 1);
    check(madvise(at, 4 * MIB, MADV_DONTNEED) == 0);
    check_zero(at, 0, 4 * MIB);
}

CASE(mincore_and_msync) {
    static unsigned char there[16384 + 1];
    FOR_SIZES(bytes) {
        char *at = map(bytes);
        fill(at, 0, bytes, 1);
        memset(there, 0xff, sizeof there);
        check(mincore(at, bytes, there) == 0);
        for (size_t i = 0; i < bytes / PAGE; i++)
            check(there[i] == 1);
        check(there[bytes / PAGE] == 0xff);
        check_error(mincore(at + 1, PAGE, there), EINVAL);
        check_error(mincore(at, PAGE, (unsigned char *)8), EFAULT);
        check(msync(at, bytes, MS_SYNC) == 0 && msync(at, bytes, MS_ASYNC) == 0 && msync(at, PAGE, MS_INVALIDATE) == 0);
        check_error(msync(at + 1, PAGE, MS_SYNC), EINVAL);
        check_error(msync(at, PAGE, MS_SYNC | MS_ASYNC), EINVAL);
        check_filled(at, 0, bytes, 1);
        unmap(at, bytes);
        check_gone(at, 0, bytes);
    }
}
