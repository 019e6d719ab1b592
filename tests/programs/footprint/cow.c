// Memory inherited by forked children: every RSS counts all of it, the charge only what was copied.
#include <sys/mman.h>

#include "footprint.h"

static size_t written_share(const struct options *options) {
    return (size_t)((double)options->bytes * options->share) / PAGE * PAGE;
}

static void write_share(const struct options *options, void *memory) {
    touch(memory, written_share(options));
}

void make_cow(const struct options *options) {
    void *memory = map_anonymous(options->bytes, MAP_PRIVATE);
    touch(memory, options->bytes);
    start_children(options, write_share, memory);
    size_t charge = options->bytes + options->count * written_share(options);
    truth_breakdown(charge, 0, 0, 0);
    truth("app_max_rss_bytes", options->bytes);
    truth("tree_max_rss_bytes", options->bytes * (options->count + 1));
    truth("tree_max_pss_bytes", charge);
    truth("sys_max_rss_bytes", charge);
    hold(options);
    release_children();
}
