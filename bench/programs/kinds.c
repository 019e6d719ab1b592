/*
 * A program with a heap that it hardly uses and a file that it reads round and round: kinds COUNTER HEAP FILE SECONDS
 * [out]. All HEAP MiB of noise are changed once in SECONDS (0: never), the file as often as can be. `out`: the heap is
 * paged out at the start by the program itself. COUNTER is a file of 8 bytes that holds how many pages of the file were
 * read.
 */
#include <sys/mman.h>
#include <time.h>

#include "program.h"

#define PAGE 4096ul
#define PART (64ul << 10)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    size_t heap = strtoul(argv[2], NULL, 10) * MIB, changed = 0;
    double period = strtod(argv[4], NULL);
    int counts = open_or_fail(argv[1], O_RDWR | O_CREAT);
    if (ftruncate(counts, sizeof(uint64_t)))
        fail(argv[1]);
    volatile uint64_t *counter = mmap(0, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, counts, 0);
    uint64_t *memory = mmap(0, heap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (counter == MAP_FAILED || memory == MAP_FAILED)
        fail("mmap");
    madvise(memory, heap, MADV_NOHUGEPAGE);
    for (size_t word = 0; word < heap / sizeof(uint64_t); word++)
        memory[word] = noise(word);
    if (argc > 5 && madvise(memory, heap, MADV_PAGEOUT))
        fail("madvise");
    int file = open_or_fail(argv[3], O_RDONLY);
    static char part[PART];
    for (double begin = now();;) {
        ssize_t got = read(file, part, PART);
        if (got < 0)
            fail(argv[3]);
        if (got == 0)
            lseek(file, 0, SEEK_SET);
        *counter += (uint64_t)got / PAGE;
        if (period > 0)
            for (size_t due = (size_t)((now() - begin) / period * (double)(heap / PAGE)); changed < due; changed++)
                memory[changed % (heap / PAGE) * (PAGE / sizeof(uint64_t))]++;
    }
}
