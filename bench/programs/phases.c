/*
 * A program with phases: phases PHASE…, each loop|random|zipf:FROM:SIZE:READS or drop:FROM:SIZE. FROM and SIZE are MiB
 * of one mapping, READS thousands of pages, each of which is read whole. drop gives the memory back.
 */
#include <math.h>
#include <sys/mman.h>

#include "program.h"

#define PAGE 4096ul
#define WORDS (PAGE / sizeof(uint64_t))
#define LINE (64 / sizeof(uint64_t))
#define ALL (4096 * MIB)

struct phase {
    char pattern[16];
    unsigned long from, size, reads;
};

static uint64_t pick(const struct phase *phase, uint64_t number, uint64_t pages) {
    double share = (double)(noise(number) >> 11) / 9007199254740992.0;
    switch (phase->pattern[0]) {
    case 'r': /* random */
        return (uint64_t)(share * (double)pages);
    case 'z': { /* zipf, exponent 0.9, ranks scattered by a prime that is larger than any number of pages */
        double rank = pow(share * (pow((double)pages + 1, 0.1) - 1) + 1, 10) - 1;
        uint64_t whole = (uint64_t)rank;
        return (whole < pages ? whole : pages - 1) * 2147483647ul % pages;
    }
    default: /* loop */
        return number % pages;
    }
}

static uint64_t run(const struct phase *phase, uint64_t *memory) {
    uint64_t *from = memory + phase->from * MIB / sizeof(uint64_t), sum = 0;
    if (phase->pattern[0] == 'd') {
        if (madvise(from, phase->size * MIB, MADV_DONTNEED) != 0)
            fail("madvise");
        return 0;
    }
    uint64_t pages = phase->size * MIB / PAGE;
    for (uint64_t page = 0; page < pages; page++)
        from[page * WORDS] = 1; // what is only read would be the kernel's one page of zeros
    for (uint64_t number = 0; number < phase->reads * 1000; number++) {
        const uint64_t *at = from + pick(phase, number, pages) * WORDS;
        for (uint64_t word = 0; word < WORDS; word += LINE)
            sum += ((const volatile uint64_t *)at)[word];
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t *memory = mmap(0, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    madvise(memory, ALL, MADV_NOHUGEPAGE);
    uint64_t sum = 0;
    for (int at = 1; at < argc; at++) {
        struct phase phase = {0};
        errno = 0;
        if (sscanf(argv[at], "%15[a-z]:%lu:%lu:%lu", phase.pattern, &phase.from, &phase.size, &phase.reads) < 3)
            fail(argv[at]);
        if ((phase.from + phase.size) * MIB > ALL || phase.size == 0)
            fail("4096 MiB are all there are");
        sum += run(&phase, memory);
    }
    printf("%lu\n", sum);
    return argc < 2;
}
