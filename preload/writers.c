#include "writers.h"

#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <sys/ioctl.h>

#include "sys.h"

// Since 5.11 and 5.19; the headers may be older than the kernel.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

// Without the right to hold up the kernel's own writes, too (vm.unprivileged_userfaultfd), those fail with EFAULT
// meanwhile: the program is told, and has lost nothing that it wrote.
static int open_one(void) {
    long all = sys(SYS_userfaultfd, O_CLOEXEC);
    return sys_failed(all) ? sys(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY) : all;
}

static bool asked(int held, unsigned long request, void *argument) {
    return !sys_failed(sys(SYS_ioctl, held, request, argument));
}

int writers_hold(uint64_t begin, uint64_t bytes) {
    uint64_t stack = (uint64_t)__builtin_frame_address(0);
    if (stack >= begin && stack < begin + bytes)
        return -1;
    int held = open_one();
    if (sys_failed(held))
        return -1;
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    struct uffdio_register all = {.range = {begin, bytes}, .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect protect = {.range = {begin, bytes}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    if (asked(held, UFFDIO_API, &api) && asked(held, UFFDIO_REGISTER, &all) &&
        asked(held, UFFDIO_WRITEPROTECT, &protect))
        return held;
    writers_go_on(held);
    return -1;
}

void writers_go_on(int held) {
    // It wakes all that wait, and takes the protection back where it still is.
    if (held >= 0)
        sys(SYS_close, held);
}
