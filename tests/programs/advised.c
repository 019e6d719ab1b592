// SPDX-License-Identifier: (MIT OR Apache-2.0)
/*
 * Memory that an agent is to advise about, and who is hot is known.
 *
 *   advised skewed MIB         accesses go to every tenth region of 2 MiB, but for 500 a second, which go to any
 *   advised chases MIB         any page, and which is next is read from it
 *   advised returns MIB        all is written and 15 of 16 pages given back; the rest is hot
 *   advised sparse MIB         one page of sixteen, which nobody uses then
 *   advised refuses MIB        as skewed, but it wants no huge pages
 *   advised still MIB          huge pages that nobody uses; every other one is full, the rest are zero but for a page
 *   advised forks MIB          as skewed, in a child
 *   advised threads MIB        as skewed, in a thread beside the first
 *   advised executes MIB       as skewed, after a second, in a program that it becomes
 *
 * Prints the address of the first region, then goes on until it is killed or standard input ends.
 */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define REGION (2ul << 20)
#define PAGE 4096ul
#define ELSEWHERE_PER_SECOND 500

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int is_over(int wait_ms) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, wait_ms) > 0;
}

static char *map(size_t regions) {
    char *memory = mmap(NULL, (regions + 1) * REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    return (char *)(((uintptr_t)memory + REGION - 1) & ~(REGION - 1));
}

static int skewed(size_t regions, int advice) {
    char *memory = map(regions);
    madvise(memory, regions * REGION, advice);
    for (size_t at = 0; at < regions * REGION; at += 64)
        memory[at] = (char)(at % 251 + 1);
    printf("%lx\n", (unsigned long)memory);
    fflush(stdout);
    size_t hot = (regions + 9) / 10;
    volatile uint64_t sum = 0;
    uint64_t elsewhere = 0, begin = now_ms();
    while (!is_over(0)) {
        for (int i = 0; i < 100000; i++) {
            uint64_t drawn = next();
            sum += (uint64_t)memory[(drawn >> 40) % hot * 10 * REGION + (drawn >> 8) % REGION];
        }
        // By the clock: on a fast processor a share of all accesses would make the cold regions nearly worth huge
        // pages.
        for (uint64_t due = (now_ms() - begin) * ELSEWHERE_PER_SECOND / 1000; elsewhere < due; elsewhere++) {
            uint64_t drawn = next();
            sum += (uint64_t)memory[(drawn >> 40) % regions * REGION + (drawn >> 8) % REGION];
        }
    }
    return 0;
}

static int chases(size_t regions) {
    char *memory = map(regions);
    uint64_t bytes = regions * REGION;
    for (size_t at = 0; at < bytes; at += 64)
        *(uint64_t *)(memory + at) = next();
    printf("%lx\n", (unsigned long)memory);
    fflush(stdout);
    uint64_t at = 0;
    while (!is_over(0)) {
        for (int i = 0; i < 100000; i++)
            at = (*(volatile uint64_t *)(memory + at) ^ next()) % bytes & ~63ul;
    }
    return 0;
}

static int sparse(size_t regions) {
    char *memory = map(regions);
    for (size_t at = 0; at < regions * REGION; at += 16 * PAGE)
        memory[at] = 1;
    printf("%lx\n", (unsigned long)memory);
    fflush(stdout);
    is_over(-1);
    return 0;
}

static int returns(size_t regions) {
    const size_t kept = REGION / 16;
    char *memory = map(regions);
    memset(memory, 1, regions * REGION);
    for (size_t region = 0; region < regions; region++)
        if (madvise(memory + region * REGION + kept, REGION - kept, MADV_DONTNEED))
            return 3;
    printf("%lx\n", (unsigned long)memory);
    fflush(stdout);
    volatile uint64_t sum = 0;
    while (!is_over(0)) {
        for (int i = 0; i < 100000; i++) {
            uint64_t drawn = next();
            sum += (uint64_t)memory[(drawn >> 40) % regions * REGION + (drawn >> 8) % kept];
        }
    }
    return 0;
}

static void *in_thread(void *regions) {
    skewed((size_t)regions, MADV_NORMAL);
    return NULL;
}

static int still(size_t regions) {
    char *memory = map(regions);
    for (size_t region = 0; region < regions; region++) {
        char *first = memory + region * REGION;
        memset(first, 1, region % 2 ? PAGE : REGION);
        if (madvise(first, REGION, MADV_COLLAPSE))
            return 3;
    }
    printf("%lx\n", (unsigned long)memory);
    fflush(stdout);
    is_over(-1);
    /* What was split still holds what it held. */
    for (size_t region = 0; region < regions; region++)
        for (size_t at = 0; at < REGION; at++)
            if (memory[region * REGION + at] != (region % 2 == 0 || at < PAGE))
                return 4;
    return 0;
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    const char *what = arguments[1];
    size_t regions = strtoul(arguments[2], NULL, 10) / 2;
    if (!strcmp(what, "skewed"))
        return skewed(regions, MADV_NORMAL);
    if (!strcmp(what, "refuses"))
        return skewed(regions, MADV_NOHUGEPAGE);
    if (!strcmp(what, "chases"))
        return chases(regions);
    if (!strcmp(what, "returns"))
        return returns(regions);
    if (!strcmp(what, "sparse"))
        return sparse(regions);
    if (!strcmp(what, "still"))
        return still(regions);
    if (!strcmp(what, "forks")) {
        pid_t child = fork();
        if (child == 0)
            return skewed(regions, MADV_NORMAL);
        waitpid(child, NULL, 0);
        return 0;
    }
    if (!strcmp(what, "threads")) {
        pthread_t thread;
        if (!pthread_create(&thread, NULL, in_thread, (void *)regions))
            pthread_join(thread, NULL);
        return 0;
    }
    if (!strcmp(what, "executes")) {
        is_over(2000);
        execl("/proc/self/exe", arguments[0], "skewed", arguments[2], NULL);
    }
    return 2;
}
