#include "heap_ahead.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "advice_told.h"
#include "advise.h"
#include "ahead.h"
#include "areas.h"
#include "blocks.h"
#include "objects.h"
#include "plan.h"
#include "presence.h"
#include "process.h"
#include "sys.h"
#include "vm.h"

static void **libc_end;     // __curbrk: what sbrk begins with
static uint64_t begin, now; // of the heap; as the program knows it
static uint64_t kernel_end; // ahead of it
static uint64_t advised;    // up to there rules have been looked at
static uint64_t ruled;      // up to there rules hold
static uint64_t filled;     // up to there it was full when it was given back
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

// A quarter of it, so that what is never used is little beside what is, and also where nothing is populated: else there
// would be no region ahead to advise. Where there are rules, they hold for whole regions.
static uint64_t ahead_of(uint64_t end) {
    const uint64_t bytes = end - begin, most = 32 << 20;
    return bytes >= plan.least && !plan.observes ? least(most, bytes / 4) : ruled > begin;
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

// Whether what is given back was filled: of regions taken evenly from it the pages are there, and they are not zeroes,
// for of a huge page all is there, whatever the program has written to it.
static bool was_full(uint64_t from, uint64_t to) {
    enum { SAMPLES = 16, SAMPLE = 128 };
    const uint64_t first = up(from, REGION), regions = to > first ? (to - first) / REGION : 0;
    const uint64_t looked = least(regions, SAMPLES / 2);
    struct iovec from_page[SAMPLES];
    uint64_t copy[SAMPLES][SAMPLE / 8], there = 0;
    if (!looked)
        return false;
    for (uint64_t i = 0; i < SAMPLES / 2; i++) {
        const uint64_t region = first + i % looked * regions / looked * REGION;
        unsigned char present[REGION / PAGE];
        if (i < looked && sys_failed(sys(SYS_mincore, region, REGION, present)))
            return false;
        for (uint64_t page = 0; i < looked && page < REGION / PAGE; page++)
            there += present[page] & 1;
        for (uint64_t half = 0; half < 2; half++)
            from_page[2 * i + half] = (struct iovec){(void *)(region + (half * 256 + 32 * i) * PAGE), SAMPLE};
    }
    if (there < looked * plan.dense)
        return false;
    struct iovec to_copy = {copy, sizeof copy};
    if (sys(SYS_process_vm_readv, process.pid, &to_copy, 1, from_page, SAMPLES, 0) != sizeof copy)
        return false;
    int written = 0;
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t any = 0;
        for (int j = 0; j < SAMPLE / 8; j++)
            any |= copy[i][j];
        written += any != 0;
    }
    return written >= SAMPLES - 2;
}

// What was full when it was given back is huge when it comes again, from its first touch: the helper would see too late
// that it is filled, as of the arrays that a simulation allocates in each step. The heap has been as large before.
static void expect(uint64_t from, uint64_t to) {
    enum { SPARE_BLOCKS = 16 };
    const uint64_t first = up(from > ruled ? from : ruled, REGION), last = least(to, filled) & -(uint64_t)REGION;
    if (huge_pages != HUGE_ADVISED || plan.observes || last <= first)
        return;
    if (blocks_now().huge < (last - first) / REGION + SPARE_BLOCKS ||
        sys(SYS_madvise, first, last - first, MADV_HUGEPAGE))
        return;
    advice_told_open();
    advice_count(&advice_told->advised_bytes, last - first);
    const struct area area = {.kind = ADVICE_HEAP, .begin = first, .end = last, .origin = begin};
    advice_tell(&area, (struct advice_decision){
                           .address = first,
                           .bytes = last - first,
                           .action = ADVICE_HUGE,
                           .why = ADVICE_LIKE_SUCH,
                       });
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
        expect(kernel_end, got);
        kernel_end = got;
        look();
    }
    return answer(end);
}

// What is given back comes back as zeroes.
static int shrink(uint64_t end) {
    presence_tell(up(end, PAGE), now);
    if (now - end >= plan.least)
        filled = was_full(end, now) ? (filled > now ? filled : now) : least(filled, end);
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
    expect(from, to);
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
