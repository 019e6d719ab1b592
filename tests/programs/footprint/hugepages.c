// 2 MiB pages: of the hugetlb pool (in no RSS and in no memory charge) or transparent (heap like any other).
#include <stdint.h>
#include <sys/mman.h>

#include "footprint.h"

static void make_transparent(const struct options *options, size_t bytes) {
    char *memory = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    memory += -(uintptr_t)memory % HUGE_PAGE;
    if (madvise(memory, bytes, MADV_HUGEPAGE))
        fail("madvise (transparent huge pages off?)");
    touch(memory, bytes);
    truth_breakdown(bytes, 0, 0, 0);
    truth("peak_detail.huge_pages", bytes);
    truth("app_max_rss_bytes", bytes);
    hold(options);
}

void make_hugepages(const struct options *options) {
    size_t bytes = (options->bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (options->transparent) {
        make_transparent(options, bytes);
        return;
    }
    int flags = MAP_ANONYMOUS | MAP_PRIVATE | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap of huge pages (vm.nr_hugepages?)");
    touch(memory, bytes);
    truth_breakdown(0, 0, 0, bytes);
    truth("app_max_rss_bytes", 0);
    hold(options);
}
