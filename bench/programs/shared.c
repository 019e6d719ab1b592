/*
 * A program that shares a machine: shared COUNTER PHASE…, each random|stream:MIB:SECONDS (0: until it is killed). Its
 * memory holds noise, which no swap device compresses. random changes pages in any order, each after some work of its
 * own: more memory is more speed. stream changes them in their order, round and round: only all of it would help.
 * COUNTER is a file of 8 bytes that holds how many pages were changed.
 */
#include <sys/mman.h>
#include <time.h>

#include "program.h"

#define PAGE 4096ul
#define WORDS (PAGE / sizeof(uint64_t))
#define LINE (64 / sizeof(uint64_t))
#define BATCH 64

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void change(uint64_t *page, uint64_t number) {
    for (uint64_t word = 0; word < WORDS; word += LINE)
        page[word] = page[word] * 6364136223846793005u + number;
}

static void run(const char *pattern, uint64_t pages, double seconds, uint64_t *memory, volatile uint64_t *counter) {
    double end = seconds > 0 ? now() + seconds : 1e18;
    for (uint64_t number = 0; now() < end; number += BATCH) {
        for (uint64_t step = number; step < number + BATCH; step++) {
            uint64_t page = pattern[0] == 'r' ? noise(step) % pages : step % pages;
            change(memory + page * WORDS, step);
        }
        *counter += BATCH;
    }
}

int main(int argc, char **argv) {
    uint64_t most = 0;
    for (int at = 2; at < argc; at++) {
        char pattern[16];
        uint64_t mib;
        double seconds;
        if (sscanf(argv[at], "%15[^:]:%lu:%lf", pattern, &mib, &seconds) != 3)
            return 2;
        most = mib > most ? mib : most;
    }
    if (most == 0)
        return 2;
    int fd = open_or_fail(argv[1], O_RDWR | O_CREAT);
    if (ftruncate(fd, sizeof(uint64_t)))
        fail(argv[1]);
    volatile uint64_t *counter = mmap(0, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint64_t *memory = mmap(0, most * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (counter == MAP_FAILED || memory == MAP_FAILED)
        fail("mmap");
    madvise(memory, most * MIB, MADV_NOHUGEPAGE);
    for (uint64_t word = 0; word < most * MIB / sizeof(uint64_t); word++)
        memory[word] = noise(word);
    for (int at = 2; at < argc; at++) {
        char pattern[16];
        uint64_t mib;
        double seconds;
        sscanf(argv[at], "%15[^:]:%lu:%lf", pattern, &mib, &seconds);
        run(pattern, mib * MIB / PAGE, seconds, memory, counter);
    }
    return 0;
}
