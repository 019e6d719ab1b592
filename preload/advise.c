#include "advise.h"

#include <errno.h>
#include <string.h>

#include "advice_told.h"
#include "ahead.h"
#include "areas.h"
#include "heap_ahead.h"
#include "lock.h"
#include "main.h"
#include "parts.h"
#include "plan.h"
#include "presence.h"
#include "private.h"
#include "process.h"
#include "serve.h"
#include "space.h"
#include "sys.h"
#include "units.h"
#include "vm.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
// aarch64 has none.
#ifndef MAP_32BIT
#define MAP_32BIT 0
#endif

enum { CLASSES = 64 };

bool advising;
static uint64_t ordinals[CLASSES];
static struct lock pieces_lock;

// Of many small ones some tell of all, and what is larger must have a place: an allocator's arenas are a MiB each.
static bool has_place(const struct area *area) {
    const uint64_t small = 2 * REGION;
    return !plan.observes || area->end - area->begin >= small || areas_used < AREAS / 2;
}

// What the pool has served is there.
static void add(struct area area) {
    if (area.end < area.begin + plan.least || (serving && units_in(area.begin, area.end)))
        return;
    if (has_place(&area) && areas_add(area) >= 0)
        ahead_wake();
    else
        advice_count(&advice_told->ranges_lost, 1);
}

// What one rule says about a range; true: it has said something. What is fresh has been touched by nobody.
static bool obey(struct rule *rule, struct area area, bool fresh) {
    if (area.end <= area.begin)
        return false;
    enum advice_action action = rule->action;
    if (action == ADVICE_POOL &&
        !(serving && (units_in(area.begin, area.end) || (fresh && serve_over(area.begin, area.end - area.begin)))))
        action = ADVICE_HUGE;
    advice_told_open();
    if (!__atomic_exchange_n(&rule->matched, true, __ATOMIC_RELAXED)) {
        advice_count(&advice_told->rules_matched, 1);
        advice_count(&advice_told->rules_unmatched, -1);
    }
    advice_tell(&area, (struct advice_decision){
                           .address = area.begin,
                           .bytes = area.end - area.begin,
                           .action = action,
                           .why = ADVICE_BY_RULE,
                           .cost_ns = rule->cost_ns,
                           .benefit_ns = rule->benefit_ns,
                       });
    if (action == ADVICE_BASE)
        sys(SYS_madvise, area.begin, area.end - area.begin, MADV_NOHUGEPAGE);
    if (action == ADVICE_HUGE || action == ADVICE_EAGER) {
        sys(SYS_madvise, area.begin, area.end - area.begin, MADV_HUGEPAGE);
        advice_count(&advice_told->advised_bytes, area.end - area.begin);
    }
    if (plan.observes)
        add(area);
    area.eager_end = area.end;
    if (action == ADVICE_EAGER && areas_add(area) >= 0)
        ahead_wake();
    return true;
}

// Mappings begin anywhere in a region, and each run elsewhere: a region belongs to the offset that is nearest to it,
// of two to the one before, as the profiler counts.
static uint64_t nearest_region(uint64_t address) {
    return (address + REGION / 2 - 1) & -(uint64_t)REGION;
}

// The rules for a range of which `area` is what is new. What none holds for, if it lies
// behind them, remains.
static struct area obey_all(struct area area, bool fresh) {
    uint32_t index = 0;
    struct rule *rule;
    while (area.end > area.begin && (rule = plan_next(&index, area.kind, area.size_class, area.ordinal))) {
        if (area.object && strcmp(area.object, rule->object))
            continue;
        struct area part = area;
        uint64_t from = rule->from ? nearest_region(area.origin + rule->from) : area.origin;
        part.begin = from > area.begin ? from : area.begin;
        part.end = rule->to == UINT64_MAX ? area.end : least(nearest_region(area.origin + rule->to), area.end);
        if (!obey(rule, part, fresh))
            continue;
        struct area between = area;
        between.end = part.begin;
        add(between);
        area.begin = part.end;
    }
    return area;
}

static uint32_t class_of(uint64_t bytes) {
    return 63 - __builtin_clzl(bytes);
}

// What the rules leave of a mapping that is made or moved.
static struct area ruled(uint64_t begin, uint64_t bytes, bool fresh) {
    uint32_t size_class = class_of(bytes);
    struct area area = {
        .kind = ADVICE_MMAP,
        .size_class = size_class,
        .ordinal = __atomic_fetch_add(&ordinals[size_class], 1, __ATOMIC_RELAXED),
        .begin = begin,
        .end = begin + up(bytes, PAGE),
        .origin = begin,
    };
    return plan.count ? obey_all(area, fresh) : area;
}

static void obtained(uint64_t begin, uint64_t bytes, int protection) {
    struct area area = ruled(begin, bytes, protection == (PROT_READ | PROT_WRITE));
    if (area.end < area.begin + plan.least)
        return;
    uint64_t first = up(area.begin, REGION), last = area.end & -(uint64_t)REGION;
    // Before it is touched: the helper may come too late for the first region.
    if (huge_pages != HUGE_NEVER && ahead_expects(area.size_class) && last > first) {
        sys(SYS_madvise, first, least(last - first, 2 * REGION), MADV_HUGEPAGE);
        area.alike = true;
    }
    add(area);
}

bool advise_speaks(uint64_t bytes) {
    uint32_t index = 0, size_class = class_of(bytes);
    return plan_next(&index, ADVICE_MMAP, size_class, __atomic_load_n(&ordinals[size_class], __ATOMIC_RELAXED));
}

void advise_served(uint64_t bytes) {
    __atomic_fetch_add(&ordinals[class_of(bytes)], 1, __ATOMIC_RELAXED);
}

void advise_made(uint64_t begin, uint64_t bytes) {
    obtained(begin, bytes, PROT_READ | PROT_WRITE);
}

bool advise_allows_pool(enum advice_kind kind, uint64_t from, uint64_t to) {
    uint32_t index = 0;
    struct rule *rule;
    while ((rule = plan_next(&index, kind, 0, 0)))
        if (rule->from < to && rule->to > from && !strcmp(rule->object, "-"))
            return rule->action == ADVICE_POOL;
    return true;
}

void advise_goes(uint64_t begin, uint64_t end) {
    presence_tell(begin, end);
    areas_remove(begin, end, plan.least);
}

void *advise_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    const int other = MAP_HUGETLB | MAP_GROWSDOWN | MAP_STACK | MAP_32BIT | MAP_LOCKED | MAP_POPULATE;
    if (flags & MAP_FIXED)
        advise_goes((uint64_t)at, (uint64_t)at + up(bytes, PAGE));
    void *got = next_mmap(at, bytes, protection, flags, file, offset);
    bool memory = flags & MAP_ANONYMOUS && (flags & MAP_TYPE) == MAP_PRIVATE && !(flags & other);
    if (got != MAP_FAILED && memory && !(protection & PROT_EXEC))
        obtained((uint64_t)got, bytes, protection);
    return got;
}

int advise_munmap(void *memory, size_t bytes) {
    if (bytes >= REGION)
        advice_sample_before_less();
    advise_goes((uint64_t)memory, (uint64_t)memory + up(bytes, PAGE));
    return next_munmap(memory, bytes);
}

// Where advice has made several mappings of the program's one, the kernel does not move it: each piece that is surely
// one is moved by itself.
static void *move_pieces(uint64_t begin, uint64_t before, uint64_t bytes, int flags, void *to, int protection) {
    const int anew = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, kept = flags & MREMAP_DONTUNMAP;
    bool fixed = flags & MREMAP_FIXED;
    if (bytes < before) {
        sys(SYS_munmap, begin + bytes, before - bytes);
        before = bytes;
    }
    const uint64_t end = begin + before;
    if (!fixed && !kept && !sys_failed(sys(SYS_mremap, end - PAGE, PAGE, PAGE + bytes - before, 0)))
        return (void *)begin;
    errno = ENOMEM;
    if (!(flags & MREMAP_MAYMOVE))
        return MAP_FAILED;
    // Huge pages stay huge where they lie as before.
    uint64_t offset = begin % REGION, target = (uint64_t)to;
    if (!fixed) {
        uint64_t all = up(offset + bytes, REGION), got = space(all, REGION);
        if (!got)
            return MAP_FAILED;
        target = got + offset;
        if (offset)
            sys(SYS_munmap, got, offset);
        if (got + all > target + bytes)
            sys(SYS_munmap, target + bytes, got + all - target - bytes);
    }
    // What is new; and what cannot be moved is copied to it.
    if (sys_failed(sys(SYS_mmap, target, bytes, PROT_READ | PROT_WRITE, anew, -1, 0)))
        return MAP_FAILED;
    for (uint64_t at = begin, next; at < end; at = next) {
        next = least(up(at + 1, REGION), end);
        uint64_t there = target + (at - begin);
        if (!sys_failed(sys(SYS_mremap, at, next - at, next - at, MREMAP_MAYMOVE | MREMAP_FIXED | kept, there)))
            continue;
        memcpy((void *)there, (void *)at, next - at);
        sys(SYS_munmap, at, next - at);
    }
    if (protection != (PROT_READ | PROT_WRITE))
        sys(SYS_mprotect, target, bytes, protection);
    return (void *)target;
}

void *advise_mremap(void *memory, size_t before, size_t bytes, int flags, void *to) {
    uint64_t begin = (uint64_t)memory, old_bytes = up(before, PAGE), new_bytes = up(bytes, PAGE);
    advise_goes(begin, begin + old_bytes);
    if (flags & MREMAP_FIXED)
        advise_goes((uint64_t)to, (uint64_t)to + new_bytes);
    char *moved = next_mremap(memory, before, bytes, flags, to);
    if (moved == MAP_FAILED && errno == EFAULT && advice_told->advised_bytes) {
        lock_take(&pieces_lock);
        int protection = private_protection(begin, old_bytes);
        errno = EFAULT;
        if (protection >= 0)
            moved = move_pieces(begin, old_bytes, new_bytes, flags, to, protection);
        lock_release(&pieces_lock);
    }
    if (moved == MAP_FAILED)
        return moved;
    add(ruled((uint64_t)moved, new_bytes, false));
    return moved;
}

// The program knows better; and what it gives back it may not fill again.
int advise_madvise(void *memory, size_t bytes, int advice) {
    uint64_t begin = (uint64_t)memory, end = begin + up(bytes, PAGE);
    bool gives = advice == MADV_DONTNEED || advice == MADV_FREE;
    if (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE)
        areas_remove(begin, end, plan.least);
    if (gives)
        presence_tell(begin, end);
    int failed = next_madvise(memory, bytes, advice);
    if (gives && bytes >= REGION)
        areas_renew(begin, end);
    return failed;
}

int advise_brk(void *end) {
    return heap_ahead_set((uint64_t)end);
}

void advise_heap(uint64_t heap, uint64_t begin, uint64_t end) {
    if (plan.count)
        obey_all((struct area){.kind = ADVICE_HEAP, .begin = begin, .end = end, .origin = heap}, false);
}

static void advise_part(enum advice_kind kind, const char *object, uint64_t begin, uint64_t end) {
    struct area area = {.kind = kind, .begin = begin, .end = end, .origin = begin, .object = object};
    area = obey_all(area, false);
    if (kind == ADVICE_BSS)
        add(area);
}

static void in_child(void) {
    process.pid = sys(SYS_getpid);
    advice_told_forget();
    ahead_forget();
    areas_forget();
    presence_forget();
    heap_ahead_forget();
    // Other threads may have had them.
    pieces_lock.state = 0;
    if (!attributing)
        smaps_lock.state = 0;
}

bool advise_read(const char *directory) {
    if (!next_mmap || !next_munmap || !next_mremap || !next_madvise || !next_brk) {
        advice_told->left_alone = ADVICE_LIBC;
        advice_told_open();
        return false;
    }
    char build_id[BUILD_ID + 1];
    parts_build_id(build_id);
    return plan_read(directory, build_id);
}

void advise_begin(const char *directory) {
    if (!ahead_begin())
        return;
    advice_told->rules_unmatched = plan.count;
    advice_told->rules_of_others = plan.others;
    at_fork(NULL, NULL, in_child);
    if (plan.observes && huge_pages != HUGE_ALWAYS) {
        areas_most = AREAS;
        presence_begin(directory);
    }
    // Else it is the pool's that the heap's end is ahead of.
    if (!serving)
        heap_ahead_begin();
    parts_each(advise_part);
    advising = true;
    if (plan.count + plan.others + plan.unreadable)
        advice_told_open();
}
