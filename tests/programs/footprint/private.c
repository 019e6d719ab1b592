// Anonymous private memory: the heap.
#include <sys/mman.h>

#include "footprint.h"

void make_private(const struct options *options) {
    void *memory = map_anonymous(options->bytes, MAP_PRIVATE);
    touch(memory, options->bytes);
    truth_breakdown(options->bytes, 0, 0, 0);
    truth("app_max_rss_bytes", options->bytes);
    truth("tree_max_rss_bytes", options->bytes);
    truth("tree_max_pss_bytes", options->bytes);
    truth("sys_max_rss_bytes", options->bytes);
    truth("floor_bytes", options->bytes + options->bytes / 512);
    hold(options);
}
