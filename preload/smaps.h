// /proc/self/smaps, one mapping after the other.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mapping {
    uint64_t begin, end;
    bool shared;
    int protection;
    uint32_t major;                        // of the device; 0: the file lies on none (tmpfs, overlay), or there is none
    uint64_t inode;                        // 0: no file
    char path[256];                        // cut
    uint64_t rss, pss, anonymous, hugetlb; // bytes
};

// Calls `each` for every mapping, in order; `rss` and what follows are 0 when the file is read without them.
// 0, or the error with which it cannot be opened or read, negative.
int smaps(const char *file, void (*each)(const struct mapping *));
