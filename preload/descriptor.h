// Descriptors of the runtime's own that are open while the program runs.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include "sys.h"

enum { HIGH_DESCRIPTOR = 900, DESCRIPTORS_AT_THE_END = 8 };

// Moves a descriptor out of the way of programs that count on the lowest numbers: to 900 or above, under a low limit
// (`ulimit -n`) to its end. Returns the new number, or the old one where there is no room.
static inline int out_of_the_way(int low) {
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &files);
    uint64_t from = HIGH_DESCRIPTOR;
    if (files.rlim_cur <= HIGH_DESCRIPTOR)
        from =
            files.rlim_cur > 2 * DESCRIPTORS_AT_THE_END ? files.rlim_cur - DESCRIPTORS_AT_THE_END : files.rlim_cur / 2;
    long high = sys(SYS_fcntl, low, F_DUPFD_CLOEXEC, from);
    if (high < 0)
        return low;
    sys(SYS_close, low);
    return (int)high;
}

// Opens a file for reading, out of the way: its first number is free again at once, before the program misses it.
static inline int open_out_of_the_way(const char *path) {
    const int low = (int)sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    return low < 0 ? low : out_of_the_way(low);
}
