/*
 * Refers to pages in an order that is known: references PATTERN PAGES COUNTER runs until it is killed, references
 * PATTERN PAGES - COUNT prints the first COUNT page numbers (32 bits each). COUNTER is a file of 8 bytes that holds how
 * many references were made. Each reference reads the whole page.
 */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define WORDS (PAGE / sizeof(uint64_t))
#define LINE (64 / sizeof(uint64_t))
/* Of the phased pattern: references per phase, and sizes in percent of all pages. */
#define PHASE 4000000ul

static uint64_t seed = 88172645463325252ull;

static uint64_t draw(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double drawn_share(void) {
    return (double)(draw() >> 11) / 9007199254740992.0;
}

/* A page that depends on the rank alone, and no two ranks' the same; pages is a power of two. */
static uint64_t scatter(uint64_t rank, uint64_t pages) {
    return (rank * 0x9e3779b1ul + 12345) & (pages - 1);
}

static uint64_t zipf(uint64_t pages, double exponent) {
    double power = 1 - exponent;
    double most = pow((double)pages + 1, power);
    double rank = pow(drawn_share() * (most - 1) + 1, 1 / power);
    uint64_t whole = (uint64_t)rank - 1;
    return scatter(whole < pages ? whole : pages - 1, pages);
}

static uint64_t phased(uint64_t number, uint64_t pages) {
    static const uint64_t percent[] = {15, 70, 30, 100};
    uint64_t phase = number / PHASE % 4;
    uint64_t size = pages * percent[phase] / 100;
    return (draw() % size + phase * pages / 5) & (pages - 1);
}

static uint64_t next(const char *pattern, uint64_t number, uint64_t last, uint64_t pages) {
    switch (pattern[0]) {
    case 'z': /* zipf */
        return zipf(pages, 0.9);
    case 'r': /* random */
        return draw() & (pages - 1);
    case 'p': /* phased */
        return phased(number, pages);
    case 'c': /* chase: one cycle through all pages (a linear congruence of full period) */
        return (last * 1664525 + 1013904223) & (pages - 1);
    default: /* loop */
        return number & (pages - 1);
    }
}

static int print(const char *pattern, uint64_t pages, uint64_t count) {
    uint64_t page = 0;
    for (uint64_t number = 0; number < count; number++) {
        page = next(pattern, number, page, pages);
        uint32_t out = (uint32_t)page;
        if (fwrite(&out, sizeof(out), 1, stdout) != 1)
            return 1;
    }
    return fflush(stdout) != 0;
}

int main(int argc, char **argv) {
    if (argc < 4 || (strcmp(argv[3], "-") == 0 && argc < 5)) {
        fprintf(stderr, "usage: references zipf|random|phased|chase|loop PAGES COUNTER | PAGES - COUNT\n");
        return 2;
    }
    uint64_t pages = strtoull(argv[2], 0, 10);
    if (strcmp(argv[3], "-") == 0)
        return print(argv[1], pages, strtoull(argv[4], 0, 10));
    int file = open(argv[3], O_RDWR);
    volatile uint64_t *counter = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    uint64_t *memory = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file < 0 || counter == MAP_FAILED || memory == MAP_FAILED) {
        perror("references");
        return 1;
    }
    madvise(memory, pages * PAGE, argc > 4 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (uint64_t page = 0; page < pages; page++)
        for (uint64_t word = 0; word < WORDS; word += LINE)
            memory[page * WORDS + word] = word != 0;
    uint64_t page = 0, sum = 0;
    for (uint64_t number = 0;; number++) {
        /* What was read in the last page decides the next: nothing runs ahead of a chase. */
        page = next(argv[1], number, page, pages) + (sum & 0);
        uint64_t *at = memory + page * WORDS;
        for (uint64_t word = 0; word < WORDS; word += LINE)
            sum += ((volatile uint64_t *)at)[word];
        *counter = number + 1;
    }
}
