#include "pagemap.h"

#include "arena.h"
#include "runtime.h"
#include "sys.h"

enum { PAGES_AT_ONCE = 4096 };

static int file;
static bool whole;
static uint64_t *entries;

bool pagemap_open(void) {
    // Anew each time: it is of the process that opened it, and programs close what they have not opened.
    file = sys(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    whole = file >= 0 && (entries || (entries = arena_pages(PAGES_AT_ONCE * sizeof *entries)));
    return whole;
}

bool pagemap_close(void) {
    sys(SYS_close, file);
    return whole;
}

void pagemap_present(uint64_t begin, uint64_t end, void (*each)(uint64_t page, uint64_t entry, void *), void *context) {
    for (uint64_t at = begin; at < end; at += PAGES_AT_ONCE * (uint64_t)PAGE) {
        uint64_t left = (end - at) / PAGE, count = least(left, PAGES_AT_ONCE);
        long got = sys(SYS_pread64, file, entries, count * 8, at / PAGE * 8);
        whole &= got == (long)count * 8;
        for (long i = 0; i < got / 8; i++)
            if (entries[i] >> PAGE_PRESENT & 1)
                each(at + i * PAGE, entries[i], context);
    }
}
