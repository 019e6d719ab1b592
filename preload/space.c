#include "space.h"

#include "sys.h"

uint64_t own_place(uint64_t bytes) {
    // As random as where the libraries are. Where addresses are short there is no such distance.
    const uint64_t away = 1UL << 44, library = (uint64_t)own_place & -PAGE;
    static uint64_t taken;
    uint64_t before = __atomic_fetch_add(&taken, up(bytes, PAGE), __ATOMIC_RELAXED);
    return library > 2 * away && before < away ? library - away + before : 0;
}

uint64_t space(uint64_t bytes, uint64_t multiple) {
    long got = sys(SYS_mmap, 0, bytes + multiple, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(got))
        return 0;
    uint64_t begin = up(got, multiple), before = begin - got, behind = multiple - before;
    if (before)
        sys(SYS_munmap, got, before);
    if (behind)
        sys(SYS_munmap, begin + bytes, behind);
    return begin;
}

bool space_at(uint64_t at, uint64_t bytes, int protection) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    long got = sys(SYS_mmap, at, bytes, protection, flags, -1, 0);
    if (sys_failed(got))
        return false;
    // A kernel before 4.17 takes an address for a wish.
    if ((uint64_t)got != at)
        sys(SYS_munmap, got, bytes);
    return (uint64_t)got == at;
}

bool is_mapped(uint64_t address) {
    unsigned char there;
    return !sys_failed(sys(SYS_mincore, address & -PAGE, PAGE, &there));
}
