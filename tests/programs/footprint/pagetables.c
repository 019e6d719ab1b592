// Page tables: one touched page in every 2 MiB costs a table page as large as itself.
#include <sys/mman.h>

#include "footprint.h"

void make_pagetables(const struct options *options) {
    char *memory = map_anonymous(options->bytes / PAGE * HUGE_PAGE, MAP_PRIVATE | MAP_NORESERVE);
    for (size_t i = 0; i < options->bytes / PAGE; i++)
        touch(memory + i * HUGE_PAGE, PAGE);
    truth_breakdown(options->bytes, 0, 0, 0);
    truth("peak_detail.page_tables", options->bytes);
    truth("floor_bytes", 2 * options->bytes);
    hold(options);
}
