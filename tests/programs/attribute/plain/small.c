// Small blocks of which every second is given back: half of every page is the allocator's.
#include <stdlib.h>
#include <string.h>

#include "plain.h"

enum { BLOCK = 1024 - 16 }; // with the allocator's own 16 bytes, four to a page

void make_small(size_t bytes) {
    size_t count = bytes / 1024;
    char **blocks = calloc(count + 1, sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(BLOCK);
        if (!blocks[i])
            fail("malloc");
        memset(blocks[i], 1, BLOCK);
    }
    hold();
    truth("application", "peak_bytes", count * 1024 + count * sizeof *blocks);
    for (size_t i = 0; i < count; i += 2)
        free(blocks[i]);
    hold();
    truth("application", "at_end_bytes", count / 2 * 1024 + count * sizeof *blocks);
    truth_at("/per_rank/0/allocator_retained_peak_bytes", count / 2 * 1024);
}
