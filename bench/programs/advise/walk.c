// walk PATTERN MIB MILLIONS: fills so much memory, makes so many million accesses to it and says, as JSON, what
// processor time they took.
//   skewed   90 % of the accesses go to every tenth region of 2 MiB
//   tiers    to eight equal parts, each half as often as the one before
//   chase    the same, and each access waits for the one before
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { REGION = 2 << 20, PARTS = 8 };

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

int main(int count, char **arguments) {
    if (count != 4)
        return 2;
    uint64_t bytes = strtoull(arguments[2], NULL, 10) << 20, accesses = strtoull(arguments[3], NULL, 10) * 1000000;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || bytes < PARTS * REGION)
        return 1;
    for (uint64_t at = 0; at < bytes; at += 8)
        *(uint64_t *)(memory + at) = at % 251 + 1;
    const int is_skewed = !strcmp(arguments[1], "skewed"), waits = !strcmp(arguments[1], "chase");
    uint64_t sum = 0;
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
    printf("{\"access_seconds\": %.4f, \"cpu_seconds\": %.4f, \"huge_kib\": %ld, \"sum\": %lu}\n", seconds() - begin,
           seconds(), huge_kib(), (unsigned long)sum);
    return 0;
}
