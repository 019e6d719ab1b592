// warm MIB [GIB]: touches so much memory, and so many of the kernel's 1 GiB pages, and gives it back, so that what runs
// next finds memory that the host has not taken from the machine.
#include <linux/mman.h>
#include <sys/mman.h>

#include "provision.h"

enum { PAGE = 4096 };

static void touch(size_t bytes, int flags) {
    if (bytes == 0)
        return;
    volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    madvise((void *)memory, bytes, MADV_HUGEPAGE); // it is faster
    for (size_t at = 0; at < bytes; at += PAGE)
        memory[at] = 1;
    munmap((void *)memory, bytes);
}

int main(int argc, char **argv) {
    (void)argc;
    touch(argument(argv, 1, 4096) * MIB, 0);
    touch(argument(argv, 2, 0) << 30, MAP_HUGETLB | MAP_HUGE_1GB);
}
