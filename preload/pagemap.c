#include "pagemap.h"

#include "arena.h"
#include "descriptor.h"
#include "runtime.h"
#include "sys.h"

enum { PAGES_AT_ONCE = 4096 };

static int file;
static bool whole;
static union {
    uint64_t *of_pagemap;
    uint8_t *of_mincore;
} entries;

bool pagemap_open(void) {
    // Anew each time: it is of the process that opened it, and programs close what they have not opened.
    file = open_out_of_the_way("/proc/thread-self/pagemap");
    whole = entries.of_pagemap || (entries.of_pagemap = arena_pages(PAGES_AT_ONCE * sizeof *entries.of_pagemap));
    return whole;
}

bool pagemap_close(void) {
    if (!sys_failed(file))
        sys(SYS_close, file);
    return whole;
}

// What has been unmapped meanwhile is not there.
static void by_mincore(uint64_t at, uint64_t count, void (*each)(uint64_t, uint64_t, void *), void *context) {
    if (sys_failed(sys(SYS_mincore, at, count * PAGE, entries.of_mincore)))
        return;
    for (uint64_t i = 0; i < count; i++)
        if (entries.of_mincore[i] & 1)
            each(at + i * PAGE, 1UL << PAGE_PRESENT | 1UL << PAGE_OF_FILE, context);
}

void pagemap_present(uint64_t begin, uint64_t end, void (*each)(uint64_t page, uint64_t entry, void *), void *context) {
    for (uint64_t at = begin; at < end; at += PAGES_AT_ONCE * (uint64_t)PAGE) {
        uint64_t left = (end - at) / PAGE, count = least(left, PAGES_AT_ONCE);
        if (sys_failed(file)) {
            by_mincore(at, count, each, context);
            continue;
        }
        long got = sys(SYS_pread64, file, entries.of_pagemap, count * 8, at / PAGE * 8);
        whole &= got == (long)count * 8;
        for (long i = 0; i < got / 8; i++)
            if (entries.of_pagemap[i] >> PAGE_PRESENT & 1)
                each(at + i * PAGE, entries.of_pagemap[i], context);
    }
}
