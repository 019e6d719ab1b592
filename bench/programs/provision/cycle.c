// cycle [MIB] [TIMES] [STRIDE]: maps MIB, writes every STRIDE-th byte, unmaps it, TIMES.
#include <sys/mman.h>

#include "provision.h"

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    (void)argc;
    size_t bytes = argument(argv, 1, 4) * MIB, times = argument(argv, 2, 1000), stride = argument(argv, 3, 4096);
    uint64_t *taken = allocate(times * sizeof *taken), sum = 0;
    memset(taken, 0, times * sizeof *taken);
    for (size_t i = 0; i < times; i++) {
        uint64_t begin = nanoseconds();
        uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            fail("mmap");
        if (stride == 1)
            memset(memory, 1, bytes);
        else
            for (size_t at = 0; at < bytes; at += stride)
                memory[at]++; // from zero
        uint64_t written = memory[0] + memory[(bytes - 1) / stride * stride];
        if (munmap(memory, bytes))
            fail("munmap");
        taken[i] = nanoseconds() - begin;
        sum += written;
    }
    double total = 0;
    for (size_t i = 0; i < times; i++)
        total += (double)taken[i];
    qsort(taken, times, sizeof *taken, by_size);
    printf("cycle: %lu\nmedian_us=%.3f\nmean_us=%.3f\nworst_us=%.3f\n", sum, (double)taken[times / 2] * 1e-3,
           total / (double)times * 1e-3, (double)taken[times - 1] * 1e-3);
}
