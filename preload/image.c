#include "image.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "advise.h"
#include "eager.h"
#include "objects.h"
#include "pagemap.h"
#include "sys.h"
#include "told.h"
#include "units.h"
#include "vm.h"

enum { LARGE_BSS = 4 << 20, STACK_BYTES = 1 << 20 };

// The anonymous pages of the executable's last segment.
static void find_bss(uint64_t *begin, uint64_t *end) {
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    uint64_t base = loader()->r_map->l_addr;
    *begin = *end = 0;
    for (uint64_t i = 0; header && i < getauxval(AT_PHNUM); i++, header++) {
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
            continue;
        *begin = up(base + header->p_vaddr + header->p_filesz, PAGE);
        *end = up(base + header->p_vaddr + header->p_memsz, PAGE);
    }
}

static void copy_page(uint64_t page, uint64_t entry, void *away) {
    (void)entry;
    memcpy((void *)(page + (int64_t)away), (void *)page, PAGE);
}

// Only what is there: to look at the rest would bring it.
static bool copy_present(uint64_t to, uint64_t from, uint64_t bytes) {
    if (!pagemap_open())
        return false;
    pagemap_present(from, from + bytes, copy_page, (void *)(to - from));
    pagemap_close();
    return true;
}

static bool put_in_pool(uint64_t first, uint64_t last) {
    uint64_t count = (last - first) / UNIT, at = units_map(0, count, PLACE_ANYWHERE);
    if (!at)
        return false;
    units_take(at, at + (last - first));
    bool copied = copy_present(at, first, last - first), moved = copied && units_move(at, first, count);
    if (copied && !moved) {
        // Of what is there now, a part may be units that are about to be somebody else's.
        next_mmap((void *)first, last - first, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memcpy((void *)first, (void *)at, last - first);
    }
    if (!moved) {
        units_release(at, at + (last - first));
        return false;
    }
    sys(SYS_munmap, at, last - first);
    told->served_calls++;
    told->served_bytes += last - first;
    return true;
}

static void serve_bss(void) {
    uint64_t begin, end;
    find_bss(&begin, &end);
    if (end < begin + LARGE_BSS)
        return;
    if (!advise_allows_pool(ADVICE_BSS, 0, end - begin)) {
        told_passed(PASSED_ADVISED, end - begin);
        return;
    }
    enum passed why = units_have((end - begin) / HUGE);
    uint64_t unit = UNIT ? UNIT : HUGE, first = up(begin, unit), last = end & -unit;
    if (why == PASSED_REASONS && last > first && units_have((last - first) / UNIT) == PASSED_REASONS &&
        put_in_pool(first, last)) {
        told_passed(PASSED_EDGE, end - begin - (last - first));
        eager_populate(begin, first);
        eager_populate(last, end);
        return;
    }
    told_passed(why == PASSED_REASONS ? PASSED_EXHAUSTED : why, end - begin);
    eager_demand(begin, end);
    eager_populate(begin, end);
}

// Downwards it grows when it is touched; so the far end first.
static void populate_stack(void) {
    struct rlimit limit = {0};
    sys(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit);
    uint64_t here = (uint64_t)__builtin_frame_address(0) & -PAGE,
             bytes = least(limit.rlim_cur / 2, STACK_BYTES) & -PAGE;
    if (!bytes)
        return;
    __atomic_fetch_or((char *)(here - bytes), 0, __ATOMIC_RELAXED);
    eager_populate(here - bytes, here);
}

void image_thread_stack(uint64_t begin, uint64_t end) {
    uint64_t bytes = least(end - begin, STACK_BYTES);
    told_passed(PASSED_STACK, bytes);
    eager_populate(end - bytes, end);
}

void image_serve(void) {
    serve_bss();
    populate_stack();
}
