// walk PATTERN MIB MILLIONS [GROUPS]: fills so much memory, makes so many million accesses to it and says, as JSON,
// what processor time they took.
//   skewed   90 % of the accesses go to every tenth region of 2 MiB
//   chosen   the same, and it asks for huge pages there itself
//   tiers    to eight equal parts, each half as often as the one before
//   chase    the same, and each access waits for the one before
//
// With GROUPS, 8 for as many equal parts or 10 for every tenth region and the others, nothing is timed as a whole: for
// each group some accesses with huge pages there and as many without take turns, and what huge pages save of all is
// said, in seconds. What else runs on the machine makes a whole run a quarter longer or shorter, which turns of 20 ms
// all share.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { REGION = 2 << 20, PARTS = 8, TENTH = 10, TURNS = 40, PAGE = 4096, CACHE = 32 << 20 };

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static uint64_t skewed(uint64_t regions) {
    uint64_t drawn = next(), tenth = (regions + 9) / 10, where = drawn >> 40;
    uint64_t region = drawn % 10 ? where % tenth * 10 : where % regions;
    return region * REGION + (drawn >> 8) % REGION;
}

static uint64_t tiers(uint64_t bytes) {
    uint64_t drawn = next(), part = __builtin_ctzll(drawn | 1 << (PARTS - 1));
    return part * (bytes / PARTS) + (drawn >> 8) % (bytes / PARTS);
}

static long huge_kib(void) {
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "AnonHugePages: %ld", &kib);
    return kib;
}

static char *memory;
static uint64_t bytes, sum;
static int is_skewed, waits;

static double walk(uint64_t accesses) {
    double begin = seconds();
    for (uint64_t i = 0; i < accesses; i++) {
        uint64_t at = is_skewed ? skewed(bytes / REGION) : tiers(bytes);
        // What was read decides what is read next, though not where.
        if (waits)
            at ^= sum & 1 & (sum >> 1) & (sum >> 63);
        sum += (uint8_t)memory[at];
        if (waits)
            state += sum >> 63;
    }
    return seconds() - begin;
}

static int is_in(uint64_t region, uint64_t group, uint64_t groups) {
    uint64_t regions = bytes / REGION;
    return groups == PARTS ? region * PARTS / regions == group : (region % TENTH == 0) == (group == 0);
}

// All regions of a group become huge pages, or what they were.
static void make(uint64_t group, uint64_t groups, int huge) {
    for (uint64_t region = 0; region < bytes / REGION; region++) {
        // Somebody may look at a page of it at this moment.
        for (int tries = 0; is_in(region, group, groups) && tries < 1000; tries++)
            if (!madvise(memory + region * REGION, huge ? REGION : PAGE, huge ? MADV_COLLAPSE : MADV_COLD))
                break;
    }
}

static int by_doubles(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

// To make huge pages moves their memory through the caches, where what is accessed rarely would stay for the whole
// turn: all that is there is pushed out, and what is accessed often comes back.
static void warm(uint64_t some) {
    static char others[2 * CACHE];
    for (size_t at = 0; at < sizeof others; at += 64)
        ((volatile char *)others)[at]++;
    walk(some / 2);
}

// The middle of what was saved by turns that followed each other.
static double saved(uint64_t group, uint64_t groups, uint64_t accesses) {
    double all[TURNS];
    const uint64_t some = accesses / 100;
    for (int turn = 0; turn < TURNS; turn++) {
        warm(some);
        double base = walk(some);
        make(group, groups, 1);
        warm(some);
        all[turn] = base - walk(some);
        make(group, groups, 0);
    }
    qsort(all, TURNS, sizeof *all, by_doubles);
    double middle = 0;
    for (int turn = TURNS / 4; turn < TURNS * 3 / 4; turn++)
        middle += all[turn] / (TURNS / 2);
    return middle * accesses / some;
}

int main(int count, char **arguments) {
    if (count != 4 && count != 5)
        return 2;
    bytes = strtoull(arguments[2], NULL, 10) << 20;
    uint64_t accesses = strtoull(arguments[3], NULL, 10) * 1000000, groups = count == 5 ? atoi(arguments[4]) : 0;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || bytes < PARTS * REGION)
        return 1;
    int is_chosen = !strcmp(arguments[1], "chosen");
    is_skewed = is_chosen || !strcmp(arguments[1], "skewed");
    waits = !strcmp(arguments[1], "chase");
    for (uint64_t region = 0; is_chosen && region < bytes / REGION; region += TENTH)
        madvise(memory + region * REGION, REGION, MADV_HUGEPAGE);
    for (uint64_t at = 0; at < bytes; at += 8)
        *(uint64_t *)(memory + at) = at % 251 + 1;
    if (!groups) {
        double took = walk(accesses);
        printf("{\"access_seconds\": %.4f, \"cpu_seconds\": %.4f, \"huge_kib\": %ld, \"sum\": %lu}\n", took, seconds(),
               huge_kib(), (unsigned long)sum);
        return 0;
    }
    printf("[");
    for (uint64_t group = 0; group < (groups == PARTS ? PARTS : 2); group++)
        printf("%s%.4f", group ? ", " : "", saved(group, groups, accesses));
    puts("]");
    return 0;
}
