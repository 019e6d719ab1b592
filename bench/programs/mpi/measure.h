// What the micro-benchmarks share. Each prints lines NAME=NUMBER, on the first rank.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Of several equal measurements: whatever disturbs one makes it longer.
static inline double fastest(const double *values, size_t count) {
    double least = values[0];
    for (size_t i = 1; i < count; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}
