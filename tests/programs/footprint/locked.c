// Locked memory: it lies on the unevictable list, which Sys-MaxRSS leaves out.
#include <sys/mman.h>

#include "footprint.h"

void make_locked(const struct options *options) {
    void *memory = map_anonymous(options->bytes, MAP_PRIVATE);
    if (mlock(memory, options->bytes))
        fail("mlock (ulimit -l?)");
    touch(memory, options->bytes);
    truth_breakdown(options->bytes, 0, 0, 0);
    truth("peak_detail.locked", options->bytes);
    truth("peak_detail.unevictable", options->bytes);
    truth("app_max_rss_bytes", options->bytes);
    hold(options);
}
