/*
 * touches base|huge|zero MIB: touches fresh memory once per page, times each touch by the processor's own clock and
 * prints what they took as JSON. The memory is populated and given back before, which makes no faults, so that the
 * machine has it at hand.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#define HUGE (2ul << 20)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    int huge = !strcmp(argv[1], "huge"), reads = !strcmp(argv[1], "zero");
    size_t bytes = strtoul(argv[2], 0, 10) << 20, step = huge ? HUGE : 4096, count = bytes / step;
    char *at = mmap(0, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *ticks = malloc(count * sizeof(*ticks));
    if (at == MAP_FAILED || !ticks)
        return 1;
    memset(ticks, 1, count * sizeof(*ticks));
    at = (char *)(((uintptr_t)at + HUGE - 1) & ~(HUGE - 1));
    madvise(at, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (madvise(at, bytes, MADV_POPULATE_WRITE) || madvise(at, bytes, MADV_DONTNEED))
        return 1;
    volatile char *touched = at;
    unsigned core;
    /* What it takes to look at the clock. */
    for (size_t i = 0; i < count; i++) {
        uint64_t before = __rdtscp(&core);
        ticks[i] = __rdtscp(&core) - before;
    }
    qsort(ticks, count, sizeof(*ticks), ascending);
    uint64_t look = ticks[count / 2];
    double begin = now();
    uint64_t first = __rdtscp(&core);
    for (size_t i = 0; i < count; i++) {
        uint64_t before = __rdtscp(&core);
        if (reads)
            (void)touched[i * step];
        else
            touched[i * step] = 1;
        uint64_t took = __rdtscp(&core) - before;
        ticks[i] = took > look ? took - look : 0;
    }
    uint64_t last = __rdtscp(&core);
    double seconds = now() - begin, us = seconds / (double)(last - first) * 1e6, sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ticks[i];
    qsort(ticks, count, sizeof(*ticks), ascending);
    double shares[] = {0.5, 0.99, 0.999};
    const char *names[] = {"p50_us", "p99_us", "p999_us"};
    printf("{\"count\": %zu, \"sum_seconds\": %.6f, \"mean_us\": %.4f", count, sum * us / 1e6, sum * us / count);
    for (int i = 0; i < 3; i++)
        printf(", \"%s\": %.4f", names[i], ticks[(size_t)(shares[i] * (count - 1))] * us);
    printf(", \"max_us\": %.4f}\n", ticks[count - 1] * us);
    return 0;
}
