// first PATTERN MIB: touches so much memory for the first time and says, as JSON, how long that took. Each page is
// filled after its first touch, as programs do that obtain memory; that is not counted.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum { PAGE = 4096, THREADS = 2, BLOCK = 100 << 10, SPARSE = 16, STALL = 50000 };

static uint32_t *took; // ns of each first touch
static char *memory;
static uint64_t pages, clock_cost;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000UL + time.tv_nsec;
}

static void touch_only(char *page, uint64_t number) {
    uint64_t before = now();
    *(volatile char *)page = 1;
    uint64_t ns = now() - before;
    took[number] = ns > clock_cost ? ns - clock_cost : 0;
}

static void touch(char *page, uint64_t number) {
    touch_only(page, number);
    for (int i = 0; i < PAGE / 8; i++)
        ((volatile uint64_t *)page)[i] = number * 8 + i + 1;
}

static void forward(void) {
    for (uint64_t i = 0; i < pages; i++)
        touch(memory + i * PAGE, i);
}

// What is written has to be computed, each word from the one before: some 4 GB/s.
static void computed(void) {
    uint64_t word = 88172645463325252u;
    for (uint64_t i = 0; i < pages; i++) {
        touch_only(memory + i * PAGE, i);
        for (int j = 0; j < PAGE / 8; j++) {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            ((volatile uint64_t *)(memory + i * PAGE))[j] = word;
        }
    }
}

static void backward(void) {
    for (uint64_t i = pages; i-- > 0;)
        touch(memory + i * PAGE, i);
}

static void zeroes(void) {
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t before = now();
        *(volatile char *)(memory + i * PAGE) = 0;
        took[i] = now() - before - clock_cost;
        memset(memory + i * PAGE, 0, PAGE);
    }
}

static void *part(void *number) {
    for (uint64_t i = pages / THREADS * (uintptr_t)number; i < pages / THREADS * ((uintptr_t)number + 1); i++)
        touch(memory + i * PAGE, i);
    return NULL;
}

static void threads(void) {
    pthread_t each[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&each[i], NULL, part, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(each[i], NULL);
}

// Every page once, in an order that no one can foresee.
static void scattered(void) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < pages; i++) {
        at = (at * 6364136223846793005UL + 1442695040888963407UL) % pages;
        touch(memory + at * PAGE, i);
    }
}

// One page of sixteen.
static void sparse(void) {
    for (uint64_t i = 0; i < pages; i += SPARSE)
        touch(memory + i * PAGE, i);
}

static void heap(void) {
    uint64_t number = 0;
    for (uint64_t i = 0; i < pages * PAGE / BLOCK; i++) {
        char *block = malloc(BLOCK);
        // Whole pages: what malloc writes itself, before and behind, is not counted.
        char *first = (char *)(((uintptr_t)block + PAGE - 1) & -(uintptr_t)PAGE);
        for (char *at = first; at + PAGE <= block + BLOCK && number < pages; at += PAGE)
            touch(at, number++);
    }
}

// The first page of each block.
static void sparse_heap(void) {
    for (uint64_t i = 0; i < pages * PAGE / BLOCK; i++)
        touch(malloc(BLOCK), i);
}

// 32 MiB at a time, each given back before the next.
static void chunks(void) {
    const uint64_t chunk = 32 << 20;
    for (uint64_t i = 0; i < pages; i += chunk / PAGE) {
        memory = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (uint64_t j = 0; j < chunk / PAGE && i + j < pages; j++)
            touch(memory + j * PAGE, i + j);
        munmap(memory, chunk);
    }
}

static int compare(const void *a, const void *b) {
    return (*(uint32_t *)a > *(uint32_t *)b) - (*(uint32_t *)a < *(uint32_t *)b);
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
        int maps;
    } patterns[] = {{"forward", forward, 1}, {"backward", backward, 1},   {"computed", computed, 1},
                    {"threads", threads, 1}, {"scattered", scattered, 1}, {"sparse", sparse, 1},
                    {"zeroes", zeroes, 1},   {"heap", heap, 0},           {"sparse-heap", sparse_heap, 0},
                    {"chunks", chunks, 0}};
    pages = count > 2 ? strtoul(words[2], NULL, 10) << 8 : 0;
    took =
        mmap(NULL, pages * sizeof *took + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    clock_cost = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = now(), cost = now() - before;
        clock_cost = cost < clock_cost ? cost : clock_cost;
    }
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && count > 2; i++) {
        if (strcmp(words[1], patterns[i].name))
            continue;
        if (patterns[i].maps)
            memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint64_t before = now();
        patterns[i].run();
        double wall = (now() - before) / 1e9, sum = 0;
        struct rusage used;
        getrusage(RUSAGE_SELF, &used);
        long resident, size;
        FILE *statm = fopen("/proc/self/statm", "r");
        if (fscanf(statm, "%ld %ld", &size, &resident) != 2)
            return 1;
        fclose(statm);
        uint64_t stalls = 0;
        for (uint64_t j = 0; j < pages; j++) {
            sum += took[j] / 1e9;
            stalls += took[j] > STALL;
        }
        qsort(took, pages, sizeof *took, compare);
        printf("{\"touch_seconds\": %f, \"stalls\": %lu, \"p999_us\": %.2f, \"max_us\": %.2f, \"wall_seconds\": %f, "
               "\"cpu_seconds\": %f, "
               "\"resident_mib\": %ld}\n",
               sum, stalls, took[(uint64_t)(pages * 0.999)] / 1e3, took[pages - 1] / 1e3, wall,
               used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
               resident / 256);
        return 0;
    }
    fprintf(stderr, "first PATTERN MIB\n");
    return 2;
}
