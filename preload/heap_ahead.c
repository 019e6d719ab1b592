#include "heap_ahead.h"

#include <errno.h>
#include <sys/resource.h>

#include "advise.h"
#include "ahead.h"
#include "areas.h"
#include "objects.h"
#include "plan.h"
#include "presence.h"
#include "sys.h"
#include "vm.h"

static void **libc_end;     // __curbrk: what sbrk begins with
static uint64_t begin, now; // of the heap; as the program knows it
static uint64_t kernel_end; // ahead of it
static uint64_t advised;    // up to there rules have been looked at
static uint64_t ruled;      // up to there rules hold
static int place = -1;      // among the areas

void heap_ahead_begin(void) {
    struct rlimit limit = {0};
    sys(SYS_prlimit64, 0, RLIMIT_DATA, 0, &limit);
    // Which says how large the heap may be: the kernel alone keeps to it.
    if (limit.rlim_cur != RLIM_INFINITY)
        return;
    libc_end = next_symbol("__curbrk");
    begin = now = kernel_end = advised = sys(SYS_brk, 0);
    if (libc_end)
        *libc_end = (void *)now;
    ruled = begin;
    uint32_t index = 0;
    const struct rule *rule;
    while ((rule = plan_next(&index, ADVICE_HEAP, 0, 0))) {
        uint64_t to = rule->to == UINT64_MAX ? rule->to : begin + rule->to;
        ruled = to > ruled ? to : ruled;
    }
}

// A quarter of it, so that what is never used is little beside what is. Where there are rules, they hold for whole
// regions.
static uint64_t ahead_of(uint64_t end) {
    uint64_t bytes = end - begin;
    return bytes >= plan.least ? least(plan.ahead, bytes / 4) : ruled > begin;
}

static int answer(uint64_t end) {
    now = end;
    *libc_end = (void *)end;
    return 0;
}

static int refuse(void) {
    *libc_end = (void *)now;
    errno = ENOMEM;
    return -1;
}

static void look(void) {
    if (place < 0 && kernel_end >= ruled && kernel_end - ruled >= plan.least) {
        place = areas_add((struct area){.kind = ADVICE_HEAP, .begin = ruled, .end = kernel_end, .origin = begin});
        if (place >= 0)
            ahead_wake();
    } else if (place >= 0) {
        areas_resize(place, kernel_end);
    }
    if (kernel_end > advised) {
        advise_heap(begin, advised, kernel_end);
        advised = kernel_end;
    }
}

static int grow(uint64_t end) {
    if (end > kernel_end) {
        uint64_t ahead = ahead_of(end), wanted = ahead ? up(end + ahead, REGION) : end;
        uint64_t got = sys(SYS_brk, wanted);
        if (got < end && ahead)
            got = sys(SYS_brk, end);
        if (got < end)
            return refuse();
        // It grows by less than a region otherwise, and is not huge even where all is.
        if (got > end && huge_pages == HUGE_ALWAYS)
            sys(SYS_madvise, up(kernel_end, PAGE), got - up(kernel_end, PAGE), MADV_NOHUGEPAGE);
        kernel_end = got;
        look();
    }
    return answer(end);
}

// What is given back comes back as zeroes.
static int shrink(uint64_t end) {
    presence_tell(up(end, PAGE), now);
    uint64_t keep = up(end + ahead_of(end), PAGE);
    if (keep < kernel_end) {
        if (place >= 0)
            areas_resize(place, keep);
        kernel_end = sys(SYS_brk, keep);
        advised = least(advised, kernel_end);
    }
    uint64_t from = up(end, PAGE), to = least(up(now, PAGE), kernel_end);
    if (to > from)
        sys(SYS_madvise, from, to - from, MADV_DONTNEED);
    return answer(end);
}

int heap_ahead_set(uint64_t end) {
    if (!libc_end)
        return next_brk((void *)end);
    // Somebody else has moved it, who patched libc after us.
    if ((uint64_t)*libc_end != now) {
        now = (uint64_t)*libc_end;
        kernel_end = sys(SYS_brk, 0);
        if (place >= 0)
            areas_resize(place, kernel_end);
    }
    if (end < begin)
        return answer(now);
    return end > now ? grow(end) : shrink(end);
}

void heap_ahead_forget(void) {
    place = -1;
}
