/*
 * A program that changes its memory page by page until it is ended: in any order, which gains from each page that it
 * has, or round and round, which gains nothing until all of it is there. It rests in between: emulated processors are
 * slow. Or once, and never again: it gains nothing from what it has.
 *
 *   wants any|round|once MIB
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES_PER_MIB = (1 << 20) / PAGE };

int main(int argc, char **argv) {
    char kind = argc == 3 ? argv[1][0] : 0;
    if (kind != 'a' && kind != 'r' && kind != 'o') {
        fprintf(stderr, "usage: %s any|round|once MIB\n", argv[0]);
        return 2;
    }
    size_t pages = strtoul(argv[2], NULL, 10) * PAGES_PER_MIB;
    volatile unsigned char *memory = malloc(pages * PAGE); // else nothing need be written that nobody reads
    if (memory == NULL) {
        perror("malloc");
        return 1;
    }
    uint32_t drawn = 1;
    for (uint64_t step = 0; kind != 'o' || step < pages; step++) {
        drawn = drawn * 1664525 + 1013904223;
        size_t page = kind == 'a' ? (uint64_t)drawn * pages >> 32 : step % pages;
        memory[page * PAGE] = (unsigned char)(step | 1);
        if (step % 32 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    for (;;)
        pause();
}
