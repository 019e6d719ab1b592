// What the programs of `bench/provision` share. Each prints what it computed, which is the same whatever memory it was
// given; lines NAME=NUMBER are measurements, and differ.
#pragma once

#include <math.h>
#include <time.h>

#include "../program.h"

static inline uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The argument of that number, or what is usual.
static inline uint64_t argument(char **argv, int number, uint64_t usual) {
    for (int i = 1; i <= number; i++)
        if (!argv[i])
            return usual;
    return strtoull(argv[number], NULL, 10);
}

static inline double *doubles(size_t count) {
    return allocate(count * sizeof(double));
}

// Of the bytes, FNV-1a by words: no bit of a result may differ.
static inline uint64_t checksum(const void *data, size_t bytes) {
    const uint64_t *words = data;
    uint64_t sum = 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        sum = (sum ^ words[i]) * 0x100000001B3u;
    return sum;
}
