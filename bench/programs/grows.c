/*
 * A program whose runs differ: grows MIB SPREAD COUNTER [MS] holds MIB x (1 + SPREAD x normal noise) of heap for MS
 * (default 50). The noise is that of the number in the file COUNTER, which each run increments.
 */
#include <time.h>

#include "program.h"

int main(int count, char **words) {
    if (count < 4)
        fail("usage: grows MIB SPREAD COUNTER [MS]");
    FILE *file = fopen(words[3], "r+");
    unsigned long number;
    if (!file || fscanf(file, "%lu", &number) != 1)
        fail(words[3]);
    rewind(file);
    fprintf(file, "%lu\n", number + 1);
    if (fclose(file))
        fail(words[3]);
    // The sum of twelve uniform values has a deviation of 1.
    double normal = -6;
    for (int i = 0; i < 12; i++)
        normal += (double)noise(number * 12 + i) / UINT64_MAX;
    size_t bytes = (size_t)(atof(words[1]) * MIB * (1 + atof(words[2]) * normal));
    // Read at the end, else the compiler leaves it out.
    char *heap = memset(allocate(bytes), 1, bytes);
    long ms = count > 4 ? atol(words[4]) : 50;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    return heap[noise(number) % bytes] != 1;
}
