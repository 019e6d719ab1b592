// faults [MIB]: writes once to each 4 KiB of MIB, in order, and tells how long the writes took: all, and those that
// faulted, by the kernel's own count.
#include <sys/resource.h>

#include "provision.h"

enum { PAGE = 4096 };

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, uint32_t *taken, size_t count) {
    qsort(taken, count, sizeof *taken, by_size);
    const struct {
        const char *name;
        double share;
    } shares[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"worst", 1}};
    printf("%s_count=%zu\n", what, count);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        size_t at = (size_t)(shares[i].share * (double)count);
        printf("%s_%s_us=%.3f\n", what, shares[i].name,
               count == 0 ? 0 : (double)taken[at < count ? at : count - 1] * 1e-3);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    size_t pages = argument(argv, 1, 4096) * MIB / PAGE, faulted = 0;
    uint32_t *touches = allocate(pages * sizeof *touches), *faults = allocate(pages * sizeof *faults);
    memset(touches, 1, pages * sizeof *touches);
    memset(faults, 1, pages * sizeof *faults);
    volatile uint8_t *memory = allocate(pages * PAGE);
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    long before = usage.ru_minflt;
    for (size_t page = 0; page < pages; page++) {
        uint64_t begin = nanoseconds();
        memory[page * PAGE] = (uint8_t)page;
        uint64_t taken = nanoseconds() - begin;
        touches[page] = taken < UINT32_MAX ? (uint32_t)taken : UINT32_MAX;
        getrusage(RUSAGE_THREAD, &usage);
        if (usage.ru_minflt != before)
            faults[faulted++] = touches[page];
        before = usage.ru_minflt;
    }
    uint64_t sum = 0;
    for (size_t page = 0; page < pages; page++)
        sum += memory[page * PAGE];
    printf("faults: %lu\n", sum);
    tell("touch", touches, pages);
    tell("fault", faults, faulted);
}
