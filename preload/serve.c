#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "advise.h"
#include "eager.h"
#include "heap_end.h"
#include "image.h"
#include "lock.h"
#include "nodes.h"
#include "prezero.h"
#include "private.h"
#include "process.h"
#include "space.h"
#include "sys.h"
#include "text.h"
#include "told.h"
#include "units.h"
#include "vm.h"

// aarch64 has none.
#ifndef MAP_32BIT
#define MAP_32BIT 0
#endif

enum { SMALL = 64 << 10, READ_WRITE = PROT_READ | PROT_WRITE };

// What is not the pool's is the kernel's, advised or not.
#define OF_KERNEL(call, ...) (advising ? advise_##call(__VA_ARGS__) : next_##call(__VA_ARGS__))

bool serving;
static bool fails;     // what the pool cannot serve
static uint64_t early; // bytes of requests so small that a pool was not asked for them

static struct lock serve_lock;
static const void *holder; // the thread, by what only it has
static uint32_t depth;
static uint64_t signals_before;

void serve_begin_exclusive(void) {
    if (__atomic_load_n(&holder, __ATOMIC_RELAXED) == &self) {
        depth++;
        return;
    }
    uint64_t all = ~0UL, before;
    sys(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    lock_take(&serve_lock);
    signals_before = before;
    __atomic_store_n(&holder, &self, __ATOMIC_RELAXED);
}

void serve_end_exclusive(void) {
    if (depth) {
        depth--;
        return;
    }
    uint64_t before = signals_before;
    __atomic_store_n(&holder, NULL, __ATOMIC_RELAXED);
    lock_release(&serve_lock);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
}

// PASSED_REASONS: it may be served.
static enum passed kind_of(uint64_t bytes, int protection, int flags) {
    const int other = MAP_HUGETLB | MAP_GROWSDOWN | MAP_32BIT;
    if (flags & other || (flags & MAP_TYPE) != MAP_PRIVATE)
        return PASSED_KIND;
    if (protection & PROT_EXEC)
        return PASSED_CODE;
    if (protection != READ_WRITE)
        return PASSED_RESERVED;
    if (flags & MAP_STACK)
        return PASSED_STACK;
    return bytes < SMALL ? PASSED_SMALL : PASSED_REASONS;
}

// Address space that may never be used is memory up to half of what the pool has.
static bool too_much_to_reserve(uint64_t bytes) {
    if (!UNIT)
        lease_ask();
    return bytes > (told->leased_bytes + lease_free_bytes) / 2;
}

// Why so much cannot be had from the pool now; PASSED_REASONS: it can.
static enum passed units_for(uint64_t bytes, int flags) {
    if (!lease_possible() && !UNIT)
        return PASSED_NO_POOL;
    if (!told->leased_bytes && bytes < HUGE && (early += bytes) < HUGE)
        return PASSED_SMALL;
    if (flags & MAP_NORESERVE && too_much_to_reserve(bytes))
        return PASSED_RESERVED;
    if (UNIT && bytes < UNIT && units_room(bytes / PAGE))
        return PASSED_REASONS;
    uint64_t unit = UNIT;
    enum passed why = units_have(unit ? (bytes + unit - 1) / unit : (bytes + HUGE - 1) / HUGE);
    return why == PASSED_REASONS && !unit ? units_have((bytes + UNIT - 1) / UNIT) : why;
}

static void served(uint64_t bytes) {
    told->served_calls++;
    told->served_bytes += bytes;
}

static void tell_unwritten(void) {
    const uint64_t unwritten = units_unwritten();
    if (unwritten > told->unwritten_bytes)
        told->unwritten_bytes = unwritten;
}

// Where the pool has no more, that is likely why.
static void tell_unwritten_once(void) {
    static bool done;
    if (!done)
        tell_unwritten();
    done = true;
}

// Memory of the pool; 0 and why not.
static uint64_t obtain(uint64_t hint, uint64_t bytes, int flags, enum passed *why) {
    *why = units_for(bytes, flags);
    if (*why == PASSED_EXHAUSTED || *why == PASSED_CAP)
        tell_unwritten_once();
    if (*why != PASSED_REASONS)
        return 0;
    uint64_t address = bytes < UNIT ? units_room(bytes / PAGE) : 0, count = (bytes + UNIT - 1) / UNIT;
    if (!address && hint && hint % UNIT == 0)
        address = units_map(hint, count, PLACE_IF_FREE);
    if (!address)
        address = units_map(0, count, PLACE_ANYWHERE);
    if (!address) {
        *why = PASSED_EXHAUSTED;
        return 0;
    }
    units_take(address, address + bytes);
    served(bytes);
    return address;
}

static bool for_want_of_memory(enum passed why) {
    return why == PASSED_NO_POOL || why == PASSED_EXHAUSTED || why == PASSED_CAP;
}

bool serve_falls_back(enum passed why, uint64_t bytes) {
    if (!fails || (why != PASSED_EXHAUSTED && why != PASSED_CAP))
        return true;
    __atomic_fetch_add(&told->fallbacks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&told->failed, 1, __ATOMIC_RELAXED);
    // A larger pool would have had it at this moment.
    told_demand((int64_t)up(bytes, HUGE));
    told_demand(-(int64_t)up(bytes, HUGE));
    return false;
}

// What of a range is not the pool's.
static void tell_the_rest(uint64_t begin, uint64_t end, enum passed why) {
    uint64_t bytes = 0;
    for (uint64_t at = begin, next; at < end; at = (next & -UNIT) + UNIT) {
        next = units_next(at, end);
        bytes += next - at;
        if (next == end)
            break;
    }
    if (bytes)
        told_passed(why, bytes);
}

// By rules, of which some may want parts to be the pool's.
static void *by_rules(void *at, size_t bytes, int flags) {
    void *got = advise_mmap(at, bytes, READ_WRITE, flags, -1, 0);
    if (got != MAP_FAILED)
        tell_the_rest((uint64_t)got, (uint64_t)got + up(bytes, PAGE), PASSED_ADVISED);
    return got;
}

static void *by_kernel(void *at, size_t bytes, int protection, int flags, enum passed why) {
    told_passed(why, bytes);
    bool wanted = for_want_of_memory(why), eager = !advising && (wanted || (why == PASSED_SMALL && bytes >= SMALL));
    void *got = eager ? eager_mmap(at, bytes, flags) : OF_KERNEL(mmap, at, bytes, protection, flags, -1, 0);
    if (got != MAP_FAILED && wanted)
        eager_demand((uint64_t)got, (uint64_t)got + bytes);
    return got;
}

// Units of which only a part is in a range: what is done to that part, huge pages cannot do.
static bool private_edges(uint64_t begin, uint64_t end) {
    uint64_t first = unit_at(begin), last = unit_at(end - 1);
    bool done = !first || begin % UNIT == 0 || make_private(begin, begin + 1);
    return done && (!last || end % UNIT == 0 || !unit_at(end - 1) || make_private(end - 1, end));
}

// The kernel has put something else there.
static void forget(uint64_t begin, uint64_t end) {
    for (uint64_t at = units_next(begin, end); at < end; at = units_next(at + UNIT, end))
        unit_forget(unit_at(at));
}

// Whole units within memory that the kernel has just mapped, private and zero: of the pool instead.
static enum passed put_over(uint64_t begin, uint64_t end, int flags) {
    enum passed why = end - begin < HUGE ? PASSED_SMALL : units_for(end - begin, flags);
    if (why != PASSED_REASONS)
        return why;
    uint64_t first = up(begin, UNIT), last = end & -UNIT;
    if (last <= first)
        return PASSED_SMALL;
    if (advising)
        advise_goes(first, last);
    if (!units_map(first, (last - first) / UNIT, PLACE_OVER)) {
        next_mmap((void *)first, last - first, READ_WRITE, flags | MAP_FIXED, -1, 0);
        return PASSED_EXHAUSTED;
    }
    units_take(first, last);
    served(last - first);
    eager_populate(begin, first);
    eager_populate(last, end);
    return PASSED_REASONS;
}

// Memory that the kernel has just mapped where the program chose: units of it become the pool's, or all is populated.
static void fill(uint64_t begin, uint64_t end, int flags) {
    enum passed why = PASSED_ADVISED;
    if (!advising || !advise_speaks(end - begin))
        why = put_over(begin, end, flags & ~MAP_FIXED_NOREPLACE);
    if (why == PASSED_REASONS) {
        tell_the_rest(begin, end, PASSED_EDGE);
        if (advising)
            advise_served(end - begin);
        return;
    }
    if (advising)
        advise_made(begin, end - begin);
    tell_the_rest(begin, end, for_want_of_memory(why) || why == PASSED_ADVISED ? why : PASSED_FIXED);
    if (!advising && for_want_of_memory(why) && !(flags & MAP_NORESERVE)) {
        eager_populate(begin, end);
        eager_demand(begin, end);
    }
}

bool serve_over(uint64_t begin, uint64_t bytes) {
    serve_begin_exclusive();
    bool done = put_over(begin, begin + bytes, MAP_PRIVATE | MAP_ANONYMOUS) == PASSED_REASONS;
    serve_end_exclusive();
    return done;
}

static void *mmap_at(void *at, size_t bytes, int flags) {
    serve_begin_exclusive();
    void *got = next_mmap(at, bytes, READ_WRITE, flags, -1, 0);
    if (got != MAP_FAILED)
        fill((uint64_t)got, (uint64_t)got + up(bytes, PAGE), flags);
    serve_end_exclusive();
    return got;
}

static void *mmap_fixed(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    uint64_t begin = (uint64_t)at, end = begin + up(bytes, PAGE);
    bool memory = flags & MAP_ANONYMOUS && kind_of(bytes, protection, flags) == PASSED_REASONS;
    if (end <= begin || begin % PAGE || offset % PAGE || (!units_in(begin, end) && !memory)) {
        void *got = OF_KERNEL(mmap, at, bytes, protection, flags, file, offset);
        if (got != MAP_FAILED)
            eager_given_back(begin, end);
        if (flags & MAP_ANONYMOUS)
            told_passed(PASSED_FIXED, bytes);
        return got;
    }
    serve_begin_exclusive();
    bool replaces = flags & MAP_FIXED, free = replaces || !units_any_live(begin, end);
    void *got = MAP_FAILED;
    errno = free ? ENOMEM : EEXIST;
    if (advising && replaces)
        advise_goes(begin, end);
    if (free && (replaces ? private_edges(begin, end) : make_private(begin, end)))
        got = next_mmap(at, bytes, protection, flags, file, offset);
    if (got != MAP_FAILED) {
        forget(begin, end);
        eager_given_back(begin, end);
    }
    if (got == at && memory)
        fill(begin, end, flags);
    serve_end_exclusive();
    return got;
}

void *serve_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    bool memory = flags & MAP_ANONYMOUS && offset % PAGE == 0;
    if (!bytes || bytes >> 47)
        return next_mmap(at, bytes, protection, flags, file, offset);
    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
        return mmap_fixed(at, bytes, protection, flags, file, offset);
    if (!memory)
        return next_mmap(at, bytes, protection, flags, file, offset);
    enum passed why = kind_of(bytes, protection, flags);
    uint64_t address = 0;
    // Where it wants it is not where units begin: what is whole of it can be of the pool.
    if (why == PASSED_REASONS && (uint64_t)at % HUGE)
        return mmap_at(at, bytes, flags);
    if (why == PASSED_REASONS && advising && advise_speaks(bytes))
        return by_rules(at, bytes, flags);
    if (why == PASSED_REASONS) {
        serve_begin_exclusive();
        address = obtain((uint64_t)at, up(bytes, PAGE), flags, &why);
        serve_end_exclusive();
    }
    if (address && advising)
        advise_served(bytes);
    if (address)
        return (void *)address;
    if (!serve_falls_back(why, bytes)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return by_kernel(at, bytes, protection, flags, why);
}

int serve_munmap(void *memory, size_t bytes) {
    uint64_t begin = (uint64_t)memory, end = begin + up(bytes, PAGE);
    if (!units_in(begin, end) || begin % PAGE || end >> 47) {
        int failed = OF_KERNEL(munmap, memory, bytes);
        if (!failed)
            eager_given_back(begin, end);
        return failed;
    }
    serve_begin_exclusive();
    int failed = 0;
    for (uint64_t at = begin; at < end && !failed;) {
        uint64_t next = units_next(at, end);
        if (next > at)
            failed = OF_KERNEL(munmap, (void *)at, next - at);
        for (at = next; at < end && unit_at(at); at = least((at & -UNIT) + UNIT, end))
            ;
    }
    units_release(begin, end);
    eager_given_back(begin, end);
    serve_end_exclusive();
    return failed;
}

// All that is in use of a unit is in the range.
static bool covers(uint32_t unit, uint64_t begin, uint64_t end) {
    uint64_t address = units[unit].address;
    for (uint64_t i = 0; i < UNIT / PAGE; i++) {
        uint64_t at = address + i * PAGE;
        if ((at < begin || at >= end) && unit_page_live(unit, i))
            return false;
    }
    return true;
}

static bool protect_unit(uint64_t at, uint64_t begin, uint64_t end, int protection) {
    uint32_t unit = unit_at(at);
    uint64_t address = units[unit].address;
    if (units[unit].protection == protection)
        return true;
    bool whole = (begin <= address && end >= address + UNIT) || covers(unit, begin, end);
    if (whole && !units[unit].alone && !next_mprotect((void *)address, UNIT, protection)) {
        units[unit].protection = protection;
        return true;
    }
    return make_private(at, at + 1);
}

int serve_mprotect(void *memory, size_t bytes, int protection) {
    uint64_t begin = (uint64_t)memory, end = begin + up(bytes, PAGE);
    if (!units_in(begin, end) || begin % PAGE)
        return next_mprotect(memory, bytes, protection);
    serve_begin_exclusive();
    int failed = 0;
    for (uint64_t at = begin, next; at < end && !failed; at = next) {
        next = units_next(at, end);
        if (next == at && unit_at(at)) {
            next = least((at & -UNIT) + UNIT, end);
            if (!units_live(at, next) || !protect_unit(at, begin, end, protection)) {
                errno = ENOMEM;
                failed = -1;
            } else if (unit_at(at)) {
                continue;
            }
        }
        if (!failed)
            failed = next_mprotect((void *)at, next - at, protection);
    }
    serve_end_exclusive();
    return failed;
}

// Advice for a part of one unit. 1: the kernel is to be asked about it; 0: it is done; -1: errno.
static int advise_pool(uint64_t begin, uint64_t end, int advice) {
    switch (advice) {
    case MADV_DONTNEED:
        if (units[unit_at(begin)].protection != READ_WRITE)
            break;
        units_zero(begin, end);
        return 0;
    // Always present, and as huge as it gets; or the kernel may do it, but need not.
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_FREE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case 20: // MADV_COLD
    case 21: // MADV_PAGEOUT
    case 22: // MADV_POPULATE_READ
    case 23: // MADV_POPULATE_WRITE
    case 25: // MADV_COLLAPSE
        return 0;
    case MADV_DONTFORK:
    case MADV_DOFORK:
        if (!covers(unit_at(begin), begin, end))
            break;
        units[unit_at(begin)].not_forked = advice == MADV_DONTFORK;
        return 0;
    case MADV_REMOVE: // not of private memory
        errno = EINVAL;
        return -1;
    default:
        // Of no length, it tells whether there is such advice.
        if (next_madvise((void *)begin, 0, advice))
            return -1;
    }
    // Memory of its own can do what the pool's cannot.
    if (make_private(begin, end))
        return 1;
    errno = ENOMEM;
    return -1;
}

int serve_madvise(void *memory, size_t bytes, int advice) {
    uint64_t begin = (uint64_t)memory, end = begin + up(bytes, PAGE);
    if (!units_in(begin, end) || begin % PAGE)
        return OF_KERNEL(madvise, memory, bytes, advice);
    serve_begin_exclusive();
    int failed = 0, error = errno;
    for (uint64_t at = begin, next; at < end; at = next) {
        next = units_next(at, end);
        int ask = 1;
        if (next == at) {
            next = least((at & -UNIT) + UNIT, end);
            ask = advise_pool(at, next, advice);
        }
        if (ask >= 0 && (!ask || !OF_KERNEL(madvise, (void *)at, next - at, advice)))
            continue;
        failed = -1;
        error = errno;
        // Where nothing is, it is told, but the rest is advised.
        if (error != ENOMEM)
            break;
    }
    serve_end_exclusive();
    errno = error;
    return failed;
}

// In place, where there is room behind it.
static bool grow(uint64_t begin, uint64_t old_end, uint64_t end) {
    uint64_t mapped = up(old_end, UNIT);
    if (mapped > old_end && units_any_live(old_end, least(mapped, end)))
        return false;
    if (end > mapped) {
        uint64_t count = (end - mapped + UNIT - 1) / UNIT;
        if (units_in(mapped, end) || units_have(count) != PASSED_REASONS || !units_map(mapped, count, PLACE_IF_FREE))
            return false;
    }
    units_take(old_end, end);
    served(end - begin);
    return true;
}

// To another place: whole units that are this mapping's alone go there as they are.
static uint64_t move(uint64_t begin, uint64_t old_end, uint64_t bytes) {
    uint64_t old_bytes = old_end - begin, whole = 0, count = (bytes + UNIT - 1) / UNIT, to;
    if (begin % UNIT == 0)
        while (whole < old_bytes / UNIT && covers(unit_at(begin + whole * UNIT), begin, old_end))
            whole++;
    if (!whole) {
        enum passed why;
        if (!(to = obtain(0, bytes, 0, &why)))
            return 0;
    } else {
        if (units_have(count - whole) != PASSED_REASONS || !(to = space(count * UNIT, UNIT)))
            return 0;
        bool all = count == whole || units_map(to + whole * UNIT, count - whole, PLACE_OVER);
        if (!all || !units_move(begin, to, whole)) {
            if (all)
                units_release(to, to + bytes);
            sys(SYS_munmap, to, count * UNIT);
            return 0;
        }
        units_take(to + whole * UNIT, to + bytes);
        next_munmap((void *)begin, whole * UNIT);
        served(bytes);
    }
    memcpy((void *)(to + whole * UNIT), (void *)(begin + whole * UNIT), old_bytes - whole * UNIT);
    units_release(begin + whole * UNIT, old_end);
    return to;
}

// The kernel's memory, grown until huge pages fit: of the pool from then on, or where huge pages begin, and populated.
static void *grow_large(void *memory, size_t before, size_t bytes) {
    uint64_t begin = (uint64_t)memory, old_bytes = up(before, PAGE), new_bytes = up(bytes, PAGE);
    if (private_protection(begin, old_bytes) != READ_WRITE)
        return MAP_FAILED;
    enum passed why;
    uint64_t to = obtain(0, new_bytes, 0, &why);
    if (to) {
        memcpy((void *)to, memory, old_bytes);
        OF_KERNEL(munmap, memory, old_bytes);
        if (advising)
            advise_served(new_bytes);
    } else if (for_want_of_memory(why) && !advising) {
        void *got = next_mremap(memory, before, bytes, 0);
        to = got == MAP_FAILED ? space(new_bytes, HUGE) : begin;
        if (to && to != begin)
            got = next_mremap(memory, before, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (to && got == MAP_FAILED)
            sys(SYS_munmap, to, new_bytes);
        if (!to || got == MAP_FAILED)
            return MAP_FAILED;
        told_passed(why, new_bytes);
        eager_populate(to + old_bytes, to + new_bytes);
        eager_demand(to, to + new_bytes);
    }
    if (!to)
        return MAP_FAILED;
    if (to != begin)
        eager_given_back(begin, begin + old_bytes);
    return (void *)to;
}

static void *mremap_by_kernel(void *memory, size_t before, size_t bytes, int flags, void *to) {
    void *got = OF_KERNEL(mremap, memory, before, bytes, flags, to);
    if (got != MAP_FAILED || errno != EFAULT)
        return got;
    serve_begin_exclusive();
    got = private_mremap((uint64_t)memory, up(before, PAGE), up(bytes, PAGE), flags, to);
    serve_end_exclusive();
    return got;
}

// Of the pool, or what it has no more for, of the kernel; MAP_FAILED.
static void *move_and_grow(uint64_t begin, uint64_t old_end, uint64_t bytes) {
    uint64_t to = move(begin, old_end, bytes);
    if (to)
        return (void *)to;
    errno = ENOMEM;
    if (!serve_falls_back(PASSED_EXHAUSTED, bytes))
        return MAP_FAILED;
    void *got = by_kernel(NULL, bytes, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, PASSED_EXHAUSTED);
    if (got != MAP_FAILED) {
        memcpy(got, (void *)begin, old_end - begin);
        units_release(begin, old_end);
    }
    return got;
}

// Memory that is the kernel's, and to a place where nothing of the pool is.
static void *mremap_of_kernel(void *memory, size_t before, size_t bytes, int flags, void *to) {
    void *got = MAP_FAILED;
    bool grows = flags == MREMAP_MAYMOVE && before && bytes >= HUGE && bytes > before && !(bytes >> 47);
    if (grows && (uint64_t)memory % PAGE == 0 && !(advising && advise_speaks(bytes))) {
        serve_begin_exclusive();
        got = grow_large(memory, before, bytes);
        serve_end_exclusive();
    }
    if (got == MAP_FAILED) {
        got = mremap_by_kernel(memory, before, bytes, flags, to);
        if (got != MAP_FAILED)
            eager_given_back((uint64_t)memory, (uint64_t)memory + up(before, PAGE));
    }
    return got;
}

// All in use, and to be read and written.
static bool is_plain(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; at = (at & -UNIT) + UNIT)
        if (!unit_at(at) || units[unit_at(at)].protection != READ_WRITE)
            return false;
    return units_live(begin, end);
}

static void *mremap_plain(uint64_t begin, uint64_t old_end, uint64_t end, int flags) {
    if (end <= old_end)
        units_release(end, old_end);
    else if (!grow(begin, old_end, end))
        return flags & MREMAP_MAYMOVE ? move_and_grow(begin, old_end, end - begin) : MAP_FAILED;
    return (void *)begin;
}

void *serve_mremap(void *memory, size_t before, size_t bytes, int flags, void *to) {
    uint64_t begin = (uint64_t)memory, old_end = begin + up(before, PAGE), end = begin + up(bytes, PAGE);
    uint64_t target = flags & MREMAP_FIXED ? (uint64_t)to : 0, target_end = target + up(bytes, PAGE);
    bool ours = before && units_in(begin, old_end), onto = target && units_in(target, target_end);
    if (begin % PAGE || !bytes || end < begin || (!ours && !onto))
        return mremap_of_kernel(memory, before, bytes, flags, to);
    serve_begin_exclusive();
    bool plain = ours && !(flags & ~MREMAP_MAYMOVE) && is_plain(begin, old_end);
    void *got = plain ? mremap_plain(begin, old_end, end, flags) : MAP_FAILED;
    if (got != MAP_FAILED && advising)
        advise_served(bytes);
    if (got == MAP_FAILED && !(plain && fails)) {
        // What the kernel can do, it does with memory of its own.
        bool own = make_private(begin, old_end) && (!onto || private_edges(target, target_end));
        errno = ENOMEM;
        if (own)
            got = mremap_by_kernel(memory, before, bytes, flags, to);
        if (got != MAP_FAILED && onto)
            forget(target, target_end);
    }
    serve_end_exclusive();
    return got;
}

int serve_brk(void *end) {
    serve_begin_exclusive();
    int failed = heap_end_set((uint64_t)end);
    serve_end_exclusive();
    return failed;
}

void *serve_sbrk(intptr_t more) {
    serve_begin_exclusive();
    void *before = heap_end_move(more);
    serve_end_exclusive();
    return before;
}

// The dump of a process that failed is to have its heap: core(5), bit 6, shared huge pages, and 8, shared DAX.
static void dump_the_pool(void) {
    char text[32];
    if (text_of_file("/proc/self/coredump_filter", text, sizeof text) <= 0)
        return;
    const char *at = text;
    uint64_t filter = text_number(&at, 16) | 1 << 6 | 1 << 8;
    text_format(text, sizeof text, "%lu", filter);
    int file = sys(SYS_openat, AT_FDCWD, "/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    sys(SYS_write, file, text, strlen(text));
    sys(SYS_close, file);
}

void serve_end(void) {
    serve_begin_exclusive();
    tell_unwritten();
    serve_end_exclusive();
}

void serve_begin(void) {
    if (!next_mmap || !next_munmap || !next_mremap || !next_mprotect || !next_madvise || !next_fork) {
        told->left_alone = PROVISION_LIBC;
        told_open();
        return;
    }
    lease_begin();
    prezero_begin();
    fails = getenv("BURSAR_POOL_FAIL");
    told->node_plus_1 = nodes_choose();
    told_open();
    if (lease_possible())
        dump_the_pool();
    serving = true;
    serve_begin_exclusive();
    heap_end_begin();
    image_serve();
    serve_end_exclusive();
}
