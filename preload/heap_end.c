#include "heap_end.h"

#include <errno.h>
#include <sys/resource.h>

#include "advise.h"
#include "eager.h"
#include "objects.h"
#include "serve.h"
#include "space.h"
#include "sys.h"
#include "told.h"
#include "units.h"
#include "vm.h"

static void **libc_end;        // __curbrk: what sbrk begins with
static uint64_t begin, now;    // of the heap; as the program knows it
static uint64_t first, mapped; // what is not the kernel's own: from the first multiple of a unit to where it is mapped
static uint64_t step;          // bytes by which it grows

void heap_end_begin(void) {
    struct rlimit limit = {0};
    sys(SYS_prlimit64, 0, RLIMIT_DATA, 0, &limit);
    // Which says how large the heap may be: the kernel alone keeps to it.
    if (limit.rlim_cur != RLIM_INFINITY || !next_brk)
        return;
    libc_end = next_symbol("__curbrk");
    begin = now = sys(SYS_brk, 0);
    if (libc_end)
        *libc_end = (void *)now;
}

static bool map_pool(uint64_t bytes) {
    uint64_t count = bytes / step;
    if (!units_map(mapped, count, PLACE_IF_FREE))
        return false;
    for (uint64_t at = mapped; at < mapped + bytes; at += UNIT)
        units[unit_at(at)].alone = true;
    return true;
}

static bool map_kernel(uint64_t bytes, enum passed why) {
    if (!serve_falls_back(why, bytes) || !space_at(mapped, bytes, PROT_READ | PROT_WRITE))
        return false;
    told_passed(why, bytes);
    if (why == PASSED_ADVISED)
        return true;
    eager_demand(mapped, mapped + bytes);
    eager_populate(mapped, mapped + bytes);
    return true;
}

// The next pieces, of the pool or of the kernel.
static bool map_more(uint64_t bytes) {
    for (uint64_t end = mapped + bytes, next; mapped < end; mapped = next) {
        bool allowed = advise_allows_pool(ADVICE_HEAP, mapped - begin, mapped - begin + step);
        for (next = mapped + step; next < end; next += step)
            if (advise_allows_pool(ADVICE_HEAP, next - begin, next - begin + step) != allowed)
                break;
        uint64_t piece = next - mapped;
        enum passed why = !allowed ? PASSED_ADVISED : UNIT ? units_have(piece / step) : PASSED_NO_POOL;
        if (why != PASSED_REASONS || !map_pool(piece))
            if (!map_kernel(piece, why == PASSED_REASONS ? PASSED_EXHAUSTED : why))
                return false;
        if (advising)
            advise_heap(begin, mapped, next);
    }
    return true;
}

static int set_now(uint64_t end) {
    now = end;
    *libc_end = (void *)end;
    return 0;
}

static int refuse(void) {
    *libc_end = (void *)now;
    errno = ENOMEM;
    return -1;
}

// Takes pages of units into use, or gives them back; the kernel's are dropped, so that they come back as zeroes.
static void use(uint64_t from, uint64_t to, bool grows) {
    for (uint64_t at = from, next; at < to; at = next) {
        next = least((at & -step) + step, to);
        if (unit_at(at) && grows) {
            units_take(at, next);
            told->served_bytes += next - at;
        } else if (!grows && !unit_at(at))
            sys(SYS_madvise, at, next - at, MADV_DONTNEED);
    }
    if (!grows)
        units_release(from, to);
}

// What is before `first` is the kernel's own.
static bool kernel_brk(uint64_t end) {
    uint64_t from = up(now, PAGE), to = up(end, PAGE);
    if (next_brk((void *)end))
        return false;
    if (to > from)
        eager_populate(from, to);
    return true;
}

static int grow(uint64_t end) {
    uint64_t from = now > first ? now : first;
    if (now < first) {
        if (!kernel_brk(first))
            return refuse();
        told_passed(PASSED_EDGE, first - now);
    }
    if (mapped < first)
        mapped = first;
    uint64_t needed = up(end, step);
    if (needed > mapped && !map_more(needed - mapped))
        return refuse();
    told->served_calls += unit_at(end - 1) != 0;
    use(up(from, PAGE), up(end, PAGE), true);
    return set_now(end);
}

static int shrink(uint64_t end) {
    uint64_t keep = end > first ? up(end, PAGE) : first;
    if (advising)
        advise_goes(keep, up(now, PAGE));
    use(keep, up(now, PAGE), false);
    uint64_t still = up(keep, step);
    for (uint64_t at = still; at < mapped; at += step)
        if (!unit_at(at)) {
            next_munmap((void *)at, step);
            eager_given_back(at, at + step);
        }
    mapped = still;
    return end >= first || kernel_brk(end) ? set_now(end) : refuse();
}

int heap_end_set(uint64_t end) {
    if (!libc_end)
        return next_brk((void *)end);
    // Somebody else, who patched libc after us, has moved the kernel's.
    if (!step)
        now = (uint64_t)*libc_end;
    if (end < begin)
        return set_now(now);
    if (!step) {
        // The first step is small; a pool is asked for when the heap comes to the first multiple.
        uint64_t unit = UNIT ? UNIT : HUGE, boundary = up(begin, unit);
        if (end <= boundary)
            return kernel_brk(end) ? set_now(end) : refuse();
        units_have((end - boundary + unit - 1) / unit);
        step = UNIT ? UNIT : HUGE;
        first = up(begin, step);
        if (first < now)
            first = up(now, step);
    }
    if (end <= first && now <= first)
        return kernel_brk(end) ? set_now(end) : refuse();
    return end > now ? grow(end) : shrink(end);
}

void *heap_end_move(intptr_t more) {
    if (!libc_end)
        return next_sbrk(more);
    uint64_t before = step ? now : (uint64_t)*libc_end, end = before + more;
    if (more > 0 ? end < before : end > before) {
        errno = ENOMEM;
        return (void *)-1;
    }
    return more && heap_end_set(end) ? (void *)-1 : (void *)before;
}
