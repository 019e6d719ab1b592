// stream [MIB] [ROUNDS] [GATHERS]: copy, scale, add and triad over three arrays of MIB together, after STREAM, and
// millions of reads at random places of them.
#include "provision.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t count = argument(argv, 1, 4096) * MIB / 3 / sizeof(double);
    uint64_t rounds = argument(argv, 2, 1), gathers = argument(argv, 3, 10) * 1000000;
    double *a = doubles(count), *b = doubles(count), *c = doubles(count);
    for (size_t i = 0; i < count; i++)
        a[i] = 1 + (double)(i % 1024) / 1024;
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++)
            c[i] = a[i];
        for (size_t i = 0; i < count; i++)
            b[i] = 0.25 * c[i];
        for (size_t i = 0; i < count; i++)
            c[i] = a[i] + b[i];
        for (size_t i = 0; i < count; i++)
            a[i] = b[i] + 0.25 * c[i];
    }
    const double *arrays[] = {a, b, c};
    double sum = 0;
    for (uint64_t i = 0; i < gathers; i++) {
        uint64_t at = noise(i);
        sum += arrays[at % 3][(size_t)(((__uint128_t)at * count) >> 64)];
    }
    printf("stream: %.17g %.17g\n", sum, a[count - 1] + b[count / 2] + c[0]);
}
