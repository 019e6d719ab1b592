// Programs with much that is zero at first, and something that is not.
#include "check.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ZEROES = 40 << 20, VALUES = 6 << 20 };

static char zeroes[ZEROES + PAGE];
static char values[VALUES] = {1, 2, 3, [VALUES - 1] = 4};
static char *pointer_to_itself = zeroes + ZEROES / 2;

CASE(bss_is_zero_and_data_is_what_was_written) {
    check_zero(zeroes, 0, ZEROES);
    check(values[0] == 1 && values[1] == 2 && values[2] == 3 && values[VALUES - 1] == 4);
    check_zero(values, 8, VALUES - 8);
    check(pointer_to_itself == zeroes + ZEROES / 2);
    fill(zeroes, 0, ZEROES, 1);
    fill(values, 0, VALUES, 2);
    check_filled(zeroes, 0, ZEROES, 1);
    check_filled(values, 0, VALUES, 2);
}

static void change(void *argument) {
    check_filled(zeroes, 0, ZEROES, 1);
    fill(zeroes, 0, ZEROES, 2);
    values[100]++;
    check_filled(zeroes, 0, ZEROES, 2);
    check(values[100] == *(char *)argument + 1);
}

CASE(fork_copies_bss) {
    char before = values[100];
    fill(zeroes, 0, ZEROES, 1);
    for (int i = 0; i < 5; i++)
        in_child(change, &before);
    check_filled(zeroes, 0, ZEROES, 1);
    check(values[100] == before);
}

CASE(the_heap_begins_behind_bss) {
    fill(zeroes, 0, ZEROES, 1);
    char *before = sbrk(0);
    check(before >= zeroes + ZEROES);
    char *at = sbrk(32 * MIB);
    check(at == before);
    char *page = (char *)(((uintptr_t)at + PAGE - 1) & -PAGE);
    check_zero(page, 0, 31 * MIB);
    fill(page, 0, 31 * MIB, 2);
    check_filled(zeroes, 0, ZEROES, 1);
    check(brk(before) == 0);
    check_filled(zeroes, 0, ZEROES, 1);
}

CASE(bss_protected_given_back_and_mapped_over) {
    char *at = (char *)(((uintptr_t)zeroes + PAGE - 1) & -PAGE);
    fill(at, 0, 16 * MIB, 1);
    check(mprotect(at + 3 * MIB, PAGE, PROT_NONE) == 0);
    check_faults_only(at, 8 * MIB, 3 * MIB, 3 * MIB + PAGE, false);
    check(mprotect(at + 3 * MIB, PAGE, PROT_READ | PROT_WRITE) == 0);
    check_filled(at, 0, 16 * MIB, 1);
    check(madvise(at + MIB, 4 * MIB, MADV_DONTNEED) == 0);
    check_zero(at, MIB, 5 * MIB);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    check(mmap(at + 8 * MIB, 3 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0) == at + 8 * MIB);
    check_zero(at, 8 * MIB, 11 * MIB);
    check_filled(at, 0, MIB, 1);
    check_filled(at, 5 * MIB, 8 * MIB, 1);
    check_filled(at, 11 * MIB, 16 * MIB, 1);
}

CASE(the_kernel_writes_to_bss) {
    int ends[2];
    check(pipe(ends) == 0);
    for (size_t offset = 0; offset + 10 <= ZEROES; offset += MIB - 3) {
        check(write(ends[1], "ten bytes!", 10) == 10);
        check(read(ends[0], zeroes + offset, 10) == 10 && !memcmp(zeroes + offset, "ten bytes!", 10));
    }
}

CASE(exec_finds_bss_zero_again) {
    check_zero(zeroes, 0, ZEROES);
    fill(zeroes, 0, ZEROES, 1);
    check_filled(zeroes, 0, ZEROES, 1);
    if (getenv("RUN_AGAIN"))
        return;
    setenv("RUN_AGAIN", "1", 1);
    execl(program, program, "exec_finds_bss_zero_again", NULL);
    check(!"exec returns");
}
