// bursts pages|huge|sparse MIB PERIOD SECONDS, bursts file MIB PERIOD SECONDS FILE [LASTS]: every PERIOD seconds
// touches each page of MIB of memory, within LASTS seconds, else at once, then sleeps. sparse: one page of every 2 MiB
// huge page. Prints the major faults of the second half of its bursts, and how many those were.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum { PAGE = 4096, HUGE = 2 << 20 };

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "bursts: %s: %s\n", what, strerror(errno));
    exit(1);
}

static volatile char *anonymous(size_t bytes, int advice) {
    char *memory = mmap(0, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    memory += HUGE - (size_t)memory % HUGE;
    if (madvise(memory, bytes, advice))
        fail("madvise");
    return memory;
}

static volatile char *mapped(const char *path, size_t bytes) {
    int file = open(path, O_RDWR);
    if (file < 0)
        fail(path);
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    // Each page by its own fault, as in anonymous memory.
    madvise(memory, bytes, MADV_RANDOM);
    return memory;
}

static long major_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_majflt;
}

static struct timespec after(struct timespec time, double seconds) {
    long ns = time.tv_nsec + (long)((seconds - (double)(long)seconds) * 1e9);
    return (struct timespec){.tv_sec = time.tv_sec + (long)seconds + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static void sleep_until(struct timespec time) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: bursts pages|huge|sparse|file MIB PERIOD SECONDS [FILE [LASTS]]\n");
        return 2;
    }
    size_t bytes = strtoul(argv[2], 0, 10) << 20, step = strcmp(argv[1], "sparse") ? PAGE : HUGE;
    double period = atof(argv[3]);
    long bursts = (long)(atof(argv[4]) / period) + 1, half = bursts / 2, before = 0, sum = 0;
    int is_file = !strcmp(argv[1], "file"), is_huge = !strcmp(argv[1], "huge") || step == HUGE;
    if (is_file && argc < 6)
        return 2;
    volatile char *memory =
        is_file ? mapped(argv[5], bytes) : anonymous(bytes, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    double lasts = argc > 6 ? atof(argv[6]) : 0;
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long burst = 0; burst < bursts; burst++) {
        if (burst == half)
            before = major_faults();
        for (size_t at = 0; at < bytes; at += step) {
            if (lasts > 0 && at % (1 << 20) == 0)
                sleep_until(after(due, lasts * (double)at / (double)bytes));
            is_file ? (sum += memory[at]) : memory[at]++;
        }
        due = after(due, period);
        sleep_until(due);
    }
    printf("%ld %ld\n", major_faults() - before, bursts - half);
    return sum == -1;
}
