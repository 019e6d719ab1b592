#include "ahead.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "advice_told.h"
#include "areas.h"
#include "arena.h"
#include "blocks.h"
#include "helper.h"
#include "plan.h"
#include "process.h"
#include "room.h"
#include "sys.h"
#include "text.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef PR_THP_DISABLE_EXCEPT_ADVISED
#define PR_THP_DISABLE_EXCEPT_ADVISED 2
#endif

enum { EXCEPT_ADVISED = 1 | PR_THP_DISABLE_EXCEPT_ADVISED };
enum { PAGES = REGION / PAGE, FRONTIERS = 16, SAMPLES = 16, SAMPLE = 1024, CLASSES = 64, AT_ONCE = 64 << 20 };
static const uint64_t SOON = 200000, LATE = 64000000, FIRST_WINDOW = 2 * REGION, SCANNED = 16UL << 30, FEW = 4 * REGION,
                      LARGEST_WINDOW = 32 << 20;
// Free blocks that are left for others.
static const uint64_t SPARE_BLOCKS = 16, MANY_BLOCKS = 2048;

// Where the program is about to come in a range. Of each window the first region is not populated: that it is present
// says that the program is there, and then the next window is populated while it works in this one.
struct frontier {
    uint64_t canary;
    int64_t direction; // 1 or -1
    uint64_t window;   // bytes, with the canary
    uint64_t before;   // bytes that should have been filled before the program came to the canary
    uint64_t passed;   // bytes, since it was found
    uint32_t trusted;  // windows that are not doubted
    bool doubted;      // it was not seen that they were: so the canary is filled page by page
};

// What the helper knows of an area.
struct watch {
    uint32_t life;
    bool settled;
    uint32_t frontier_count;
    uint64_t scan_at, scanned_after, present;
    struct frontier frontiers[FRONTIERS];
};

enum huge_pages huge_pages;
static bool always; // is the system's setting
static struct watch watches[WATCHED];
static unsigned char *present_pages;
static uint32_t news, asleep, started;
static bool alone; // with one processor what it does is not done beside
static bool populates = true;
static bool scarce; // free blocks are
static uint8_t filled_before[CLASSES], sparse_before[CLASSES];
static uint64_t now, progress_at, period;

static uint64_t down(uint64_t value) {
    return value & -(uint64_t)REGION;
}

static void tell(const struct area *area, uint64_t begin, uint64_t bytes, enum advice_action action,
                 enum advice_why why) {
    uint64_t count = bytes / REGION;
    bool ahead = action == ADVICE_AHEAD || action == ADVICE_EAGER;
    advice_tell(area, (struct advice_decision){
                          .address = begin,
                          .bytes = bytes,
                          .action = action,
                          .why = why,
                          .cost_ns = ahead ? count * plan.populate_ns : 0,
                          .benefit_ns = ahead ? count * PAGES * plan.base_fault_ns : 0,
                      });
}

// Of so many pages, how many are there.
static uint64_t count_present(const unsigned char *pages, uint64_t count) {
    uint64_t there = 0;
    for (uint64_t i = 0; i < count; i += 8) {
        uint64_t eight;
        memcpy(&eight, pages + i, 8);
        there += __builtin_popcountl(eight & 0x0101010101010101);
    }
    return there;
}

static uint64_t region_present(uint64_t region) {
    return sys_failed(sys(SYS_mincore, region, REGION, present_pages)) ? 0 : count_present(present_pages, PAGES);
}

static bool page_present(uint64_t page) {
    unsigned char there = 0;
    return !sys_failed(sys(SYS_mincore, page, PAGE, &there)) && there & 1;
}

// Of pages taken here and there, those that are not all zeroes: what they hold is the program's. -1: cannot be told.
static int filled_samples(uint64_t begin, uint64_t end) {
    static uint64_t copy[SAMPLES][SAMPLE / 8], random;
    const uint64_t part = (end - begin) / SAMPLES;
    struct iovec from[SAMPLES], to = {copy, sizeof copy};
    for (int i = 0; i < SAMPLES; i++) {
        // A program's steps are regular.
        random = random * 6364136223846793005 + 1442695040888963407;
        uint64_t at = begin + part * i + (random >> 33) % part;
        from[i] = (struct iovec){(void *)(at & -(uint64_t)PAGE), SAMPLE};
    }
    if (sys(SYS_process_vm_readv, process.pid, &to, 1, from, SAMPLES, 0) != sizeof copy)
        return -1;
    int filled = 0;
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t any = 0;
        for (int j = 0; j < SAMPLE / 8; j++)
            any |= copy[i][j];
        filled += any != 0;
    }
    return filled;
}

static bool is_filled(uint64_t begin, uint64_t end) {
    return filled_samples(begin, end) >= SAMPLES - 2;
}

// Free blocks as large as a huge page.
static uint64_t free_blocks(void) {
    static uint64_t read_at, blocks;
    if (now < read_at + 50000000 && blocks >= MANY_BLOCKS)
        return blocks;
    read_at = now;
    return blocks = blocks_now().huge;
}

static long disabled(void) {
    return sys(SYS_prctl, PR_GET_THP_DISABLE, 0, 0, 0, 0);
}

static bool is_disabled(void) {
    return disabled() == 1;
}

// Free memory is in pieces where less than an eighth of it is in blocks, until a quarter is.
static bool in_pieces(void) {
    static bool was;
    struct blocks now = blocks_now();
    const uint64_t in_blocks = now.huge * PAGES;
    return was = in_blocks < now.pages / (was ? 4 : 8);
}

// In a system where all is huge, rules say what is to be, and the rest is not; nor where free memory is in pieces:
// there a first touch may look for a block for milliseconds. It outlives exec: what was said before the program began
// is taken to be ours, what it says itself is not. Who only observes does without any before Linux 6.18: of a huge page
// all is there, whatever is touched of it.
static void limit_to_advised(void) {
    static bool ours = true;
    const bool limit = always && (plan.count || in_pieces());
    const long flags = disabled();
    if (limit && flags == 0) {
        ours = !sys_failed(sys(SYS_prctl, PR_SET_THP_DISABLE, 1, PR_THP_DISABLE_EXCEPT_ADVISED, 0, 0));
        if (!ours && plan.observes)
            sys(SYS_prctl, PR_SET_THP_DISABLE, 1, 0, 0, 0);
    } else if (!limit && flags == EXCEPT_ADVISED && ours) {
        sys(SYS_prctl, PR_SET_THP_DISABLE, 0, 0, 0, 0);
    }
    const bool limited = disabled() == EXCEPT_ADVISED;
    ours = ours && limited;
    if (always)
        huge_pages = limited ? HUGE_ADVISED : plan.observes && is_disabled() ? HUGE_NEVER : HUGE_ALWAYS;
}

enum came { POPULATED, ALREADY_THERE, GONE, REFUSED };

static enum came populate(int place, uint32_t life, uint64_t region) {
    if (!areas_enter(place, life, region, region + REGION))
        return GONE;
    unsigned char first = 0;
    long failed = sys(SYS_mincore, region, PAGE, &first);
    bool there = first & 1;
    if (!failed && !there) {
        if (huge_pages == HUGE_NEVER) {
            failed = sys(SYS_madvise, region, PAGE, MADV_POPULATE_WRITE);
            if (!failed)
                failed = sys(SYS_madvise, region, REGION, MADV_COLLAPSE);
        } else {
            failed = sys(SYS_madvise, region, REGION, MADV_POPULATE_WRITE);
        }
    }
    areas_leave();
    if (failed == -EINVAL)
        populates = false;
    if (failed)
        return REFUSED;
    if (there)
        return ALREADY_THERE;
    advice_count(&advice_told->populated_bytes, REGION);
    advice_count(&advice_told->promoted, 1);
    return POPULATED;
}

static bool advise(int place, uint32_t life, uint64_t begin, uint64_t end, int advice) {
    if (huge_pages == HUGE_NEVER)
        return true;
    if (!areas_enter(place, life, begin, end))
        return false;
    bool done = !sys(SYS_madvise, begin, end - begin, advice);
    areas_leave();
    return done;
}

// Zeroes are given back where much of a huge page is that. The kernel looks for itself, while nobody can write to them.
static void demote(int place, uint32_t life, uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; at += REGION) {
        int filled = filled_samples(at, at + REGION);
        if (filled < 0 || filled > SAMPLES / 2 || !areas_enter(place, life, at, at + REGION))
            continue;
        bool done = !sys(SYS_madvise, at, PAGE, MADV_COLD);
        areas_leave();
        advice_count(&advice_told->demoted, done);
    }
}

// Free memory, as far as it is known: it is asked for now and then.
static uint64_t free_memory(void) {
    static struct room_text text;
    static uint64_t read_at, populated_then, bytes;
    uint64_t populated = advice_told->populated_bytes;
    if (!read_at || now > read_at + 50000000 || populated - populated_then > bytes / 4) {
        bytes = room_now(&text);
        populated_then = populated;
        read_at = now;
    }
    return bytes - least(bytes, populated - populated_then);
}

// Goes on with a window that begins with the canary. False: it does not.
static bool extend(int place, const struct area *area, struct frontier *frontier, uint64_t canary, uint64_t window,
                   enum advice_why why) {
    const uint64_t first = up(area->begin, REGION), last = down(area->end);
    bool upwards = frontier->direction > 0;
    if (canary < first || canary >= last)
        return false;
    window = least(window, upwards ? last - canary : canary + REGION - first);
    uint64_t begin = upwards ? canary : canary + REGION - window, end = begin + window;
    uint64_t more = window > FEW ? window : FEW;
    scarce = free_blocks() < (window + more) / REGION + SPARE_BLOCKS;
    if (scarce) {
        tell(area, begin, window, ADVICE_LEAVE, ADVICE_NO_BLOCKS);
        return false;
    }
    if (free_memory() < 4 * window) {
        tell(area, begin, window, ADVICE_LEAVE, ADVICE_NO_ROOM);
        return false;
    }
    // A program that is faster than the helper finds huge pages behind the window, too.
    uint64_t low = upwards ? begin : begin - least(more, begin - first);
    uint64_t high = upwards ? end + least(more, last - end) : end;
    if (is_disabled() || !advise(place, area->life, low, high, MADV_HUGEPAGE))
        return false;
    advice_count(&advice_told->advised_bytes, window);
    frontier->canary = canary;
    frontier->window = window;
    if (!populates || alone) {
        tell(area, begin, window, ADVICE_HUGE, why);
        return true;
    }
    // From the far end, so that it meets a program that is faster rather than to run beside it.
    enum came came = POPULATED;
    uint64_t done = 0;
    for (uint64_t i = window / REGION - 1; i > 0 && came == POPULATED; i--, done += came == POPULATED)
        came = populate(place, area->life, canary + frontier->direction * (int64_t)(i * REGION));
    tell(area, begin, done * REGION, ADVICE_AHEAD, why);
    return came != GONE && came != REFUSED;
}

// What is populated and then not used is little beside what is; what is only advised takes nothing.
static uint64_t next_window(const struct frontier *frontier) {
    const bool only_advised = alone || !populates;
    const uint64_t part = frontier->passed / (only_advised ? 4 : 12), few = only_advised ? FEW : FIRST_WINDOW;
    const uint64_t largest = only_advised ? LARGEST_WINDOW : down(plan.ahead);
    uint64_t most = least(down(part > few ? part : few), largest);
    uint64_t window = least(2 * frontier->window, most);
    return window > FIRST_WINDOW ? window : FIRST_WINDOW;
}

static bool is_followed(const struct watch *watch, uint64_t region, const struct frontier *but) {
    for (uint32_t i = 0; i < watch->frontier_count; i++) {
        const struct frontier *frontier = &watch->frontiers[i];
        if (frontier == but)
            continue;
        uint64_t far = frontier->canary + frontier->direction * (int64_t)frontier->window;
        uint64_t low = least(frontier->canary, far), high = low == far ? frontier->canary : far;
        if (region + REGION >= low && region <= high + REGION)
            return true;
    }
    return false;
}

enum went { WAITS, WENT_ON, ENDED };

static enum went follow(int place, const struct area *area, struct watch *watch, struct frontier *frontier) {
    const int64_t direction = frontier->direction;
    const uint64_t first = up(area->begin, REGION), last = down(area->end);
    uint64_t there = region_present(frontier->canary);
    if (frontier->doubted) {
        uint64_t beyond = frontier->canary + direction * (int64_t)REGION;
        if (there >= plan.dense) {
            frontier->doubted = false;
            frontier->trusted = 2 * frontier->before / REGION;
        } else {
            if (beyond < first || beyond >= last || !page_present(beyond))
                return WAITS;
            // The program has gone on without filling it.
            uint64_t from = frontier->canary - direction * (int64_t)frontier->before;
            uint64_t begin = direction > 0 ? from : frontier->canary + REGION;
            uint64_t end = direction > 0 ? frontier->canary : from + REGION;
            demote(place, area->life, begin, end);
            tell(area, begin, end - begin, ADVICE_DEMOTE, ADVICE_SPARSE);
            sparse_before[area->size_class] = 1;
            watch->settled = true;
            return ENDED;
        }
    } else if (!there) {
        return WAITS;
    }
    uint64_t canary = frontier->canary, next = canary + direction * (int64_t)frontier->window;
    uint64_t low = direction > 0 ? canary - frontier->before : canary + REGION;
    uint64_t high = direction > 0 ? canary : canary + REGION + frontier->before;
    bool checked = frontier->before > REGION;
    // Until the heap has grown.
    if (area->kind == ADVICE_HEAP && direction > 0 && next >= last)
        return WAITS;
    // Where it has been faster, on to where it is.
    while (next >= first && next < last && page_present(next))
        next += direction * (int64_t)REGION;
    if (is_followed(watch, next, frontier))
        return ENDED;
    const uint64_t distance = direction * (int64_t)(next - canary);
    frontier->passed += distance;
    if (checked && frontier->trusted) {
        frontier->trusted--;
    } else if (checked && !is_filled(low, high)) {
        // Zeroes that it wrote, or nothing: the region behind this window tells.
        if (next < first || next >= last)
            return ENDED;
        uint64_t more = frontier->window > FEW ? frontier->window : FEW;
        uint64_t from = direction > 0 ? next : next + REGION - least(more, next + REGION - first);
        uint64_t to = direction > 0 ? next + least(more, last - next) : next + REGION;
        advise(place, area->life, from, to, MADV_NOHUGEPAGE);
        frontier->before = distance;
        frontier->canary = next;
        frontier->window = REGION;
        frontier->doubted = true;
        return WENT_ON;
    } else if (checked && filled_before[area->size_class] < 255) {
        filled_before[area->size_class]++;
    }
    uint64_t window = next_window(frontier);
    frontier->before = distance;
    return extend(place, area, frontier, next, window, ADVICE_IN_ORDER) ? WENT_ON : ENDED;
}

static void seed(int place, const struct area *area, struct watch *watch, uint64_t canary, int64_t direction,
                 uint64_t window, enum advice_why why) {
    if (watch->frontier_count == FRONTIERS || is_followed(watch, canary, NULL))
        return;
    struct frontier *frontier = &watch->frontiers[watch->frontier_count];
    *frontier = (struct frontier){.direction = direction};
    watch->frontier_count += extend(place, area, frontier, canary, window, why);
}

// That it is there at one touch says nothing.
static bool is_full(uint64_t there, uint64_t region) {
    return there >= plan.dense && (huge_pages != HUGE_ALWAYS || is_filled(region, region + REGION));
}

// Looks for places where one region is filled, the one beside it has been begun, and the next not.
static void scan(int place, const struct area *area, struct watch *watch) {
    if (is_disabled()) {
        advice_told->left_alone = ADVICE_DISABLED;
        watch->settled = true;
        return;
    }
    uint64_t last[2] = {PAGES + 1, PAGES + 1}, total = 0, empty = 0, looked = 0;
    const uint64_t first = up(area->begin, REGION), end = down(area->end), followed = watch->frontier_count;
    uint64_t began = now_ns();
    for (uint64_t at = first; at < end && looked < SCANNED; at += AT_ONCE) {
        uint64_t bytes = least(AT_ONCE, end - at);
        if (sys_failed(sys(SYS_mincore, at, bytes, present_pages)))
            break;
        looked += bytes;
        for (uint64_t i = 0; i < bytes / REGION; i++) {
            uint64_t region = at + i * REGION, there = count_present(present_pages + i * PAGES, PAGES);
            bool here = there > 0,
                 between = last[0] > 0 && last[0] <= PAGES && (last[0] < plan.dense || huge_pages == HUGE_ALWAYS);
            total += there;
            empty += !here;
            if (!here && between && last[1] <= PAGES && is_full(last[1], region - 2 * REGION))
                seed(place, area, watch, region, 1, FIRST_WINDOW, ADVICE_IN_ORDER);
            else if (last[1] == 0 && between && is_full(there, region))
                seed(place, area, watch, region - 2 * REGION, -1, FIRST_WINDOW, ADVICE_IN_ORDER);
            last[1] = last[0];
            last[0] = there;
        }
    }
    now = now_ns();
    bool is_first = !watch->scanned_after, moved = total != watch->present;
    watch->present = total;
    // At most a hundredth of a processor, and three while the program is somewhere where it is not followed: where
    // there is one thread others may just have begun.
    bool is_near = watch->frontier_count ? watch->frontier_count > followed : moved || is_first;
    uint64_t times = is_near ? 32 : 128;
    uint64_t pace = (now - began) * times, soon = watch->frontier_count ? 25 * SOON : SOON;
    watch->scanned_after = moved || is_first ? soon : least(2 * watch->scanned_after, LATE);
    watch->scan_at = now + (pace > watch->scanned_after ? pace : watch->scanned_after);
    if (!empty && !watch->frontier_count && looked && area->kind != ADVICE_HEAP)
        watch->settled = true;
    if (moved)
        progress_at = now;
}

static void populate_eager(int place, const struct area *area) {
    uint64_t first = up(area->begin, REGION), last = down(least(area->eager_end, area->end)), done = 0;
    enum came came = POPULATED;
    for (uint64_t at = first; at < last && came != GONE && came != REFUSED; at += REGION) {
        if (free_memory() < 4 * REGION)
            break;
        came = populate(place, area->life, at);
        done += came == POPULATED;
    }
    tell(area, first, done * REGION, ADVICE_EAGER, ADVICE_BY_RULE);
}

static void begin_watch(int place, const struct area *area, struct watch *watch) {
    *watch = (struct watch){.life = area->life, .scan_at = now};
    advice_told_open();
    advice_count(&advice_told->ranges, 1);
    if (area->eager_end) {
        populate_eager(place, area);
        watch->settled = true;
    } else if (area->alike) {
        // The more often, the farther.
        uint64_t window = FIRST_WINDOW << least(filled_before[area->size_class], 4), most = down(plan.ahead);
        seed(place, area, watch, up(area->begin, REGION), 1, alone ? LARGEST_WINDOW : least(window, most),
             ADVICE_LIKE_SUCH);
    }
}

enum looked { DONE, NOTHING_NEW, HELPED };

static enum looked look(int place) {
    struct watch *watch = &watches[place];
    struct area area = areas[place];
    if (area.life % 2 == 0 || __atomic_load_n(&areas[place].life, __ATOMIC_ACQUIRE) != area.life)
        return DONE;
    enum looked looked = NOTHING_NEW;
    bool is_new = watch->life != area.life;
    if (is_new)
        begin_watch(place, &area, watch);
    if (watch->settled)
        return DONE;
    for (uint32_t i = 0; i < watch->frontier_count;) {
        enum went went = follow(place, &area, watch, &watch->frontiers[i]);
        if (went != WAITS) {
            now = now_ns();
            period = now - progress_at;
            progress_at = now;
            looked = HELPED;
        }
        if (went == ENDED) {
            watch->frontiers[i] = watch->frontiers[--watch->frontier_count];
            watch->scan_at = now + LATE / 4;
        } else {
            i++;
        }
    }
    if (now >= watch->scan_at)
        scan(place, &area, watch);
    return looked;
}

static void limit_paced(void) {
    static uint64_t next;
    if (now >= next && next)
        limit_to_advised();
    if (now >= next)
        next = now + 1000000000;
}

// Half of the time until the program should have come to where the next window begins.
static uint64_t rest(void) {
    const uint64_t soon = alone ? 5 * SOON : SOON, since = now - progress_at;
    const uint64_t rest = since < period ? (period - since) / 2 : since / 8;
    return rest < soon ? soon : least(rest, LATE);
}

static void help(void) {
    // Its files are its own: what the program opens has the number it would have without it. Linux 5.9.
    sys(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE);
    uint64_t affinity[128] = {0}, processors = 0;
    long bytes = sys(SYS_sched_getaffinity, 0, sizeof affinity, affinity);
    for (long i = 0; i < bytes / 8; i++)
        processors += __builtin_popcountl(affinity[i]);
    alone = processors == 1 || !plan.ahead;
    for (;;) {
        helper_leaves();
        uint32_t seen = __atomic_load_n(&news, __ATOMIC_SEQ_CST);
        now = now_ns();
        enum looked most = DONE;
        for (uint32_t i = 0; i < __atomic_load_n(&areas_used, __ATOMIC_SEQ_CST); i++) {
            enum looked looked = look(i);
            most = looked > most ? looked : most;
        }
        uint64_t due = advice_sample_paced();
        now = now_ns();
        limit_paced();
        advice_told->helper_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        // While it populated the program went on, maybe to where the next window begins.
        if (most == HELPED)
            continue;
        // Where nothing more is to be done, the memory is full: a last sample sees it so.
        uint64_t ns = most == NOTHING_NEW ? rest() : due;
        struct timespec wait = {ns / 1000000000, ns % 1000000000};
        __atomic_store_n(&asleep, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&news, __ATOMIC_SEQ_CST) == seen)
            sys(SYS_futex, &news, FUTEX_WAIT_PRIVATE, seen, ns ? &wait : NULL);
        __atomic_store_n(&asleep, 0, __ATOMIC_SEQ_CST);
    }
}

void ahead_wake(void) {
    if (plan.observes)
        return;
    uint32_t not_yet = 0;
    if (!__atomic_load_n(&started, __ATOMIC_RELAXED)) {
        // What vfork shares is the parent's, and a thread begun there would be the child's.
        if (sys(SYS_getpid) != process.pid ||
            !__atomic_compare_exchange_n(&started, &not_yet, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return;
        helper_start(help, &news);
        return;
    }
    __atomic_fetch_add(&news, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&asleep, __ATOMIC_SEQ_CST))
        sys(SYS_futex, &news, FUTEX_WAKE_PRIVATE, 1);
}

bool ahead_expects(uint32_t size_class) {
    return filled_before[size_class] && !sparse_before[size_class] && !scarce;
}

bool ahead_begin(void) {
    char text[64];
    if (text_of_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text) <= 0)
        return false;
    huge_pages = strstr(text, "[always]") ? HUGE_ALWAYS : strstr(text, "[madvise]") ? HUGE_ADVISED : HUGE_NEVER;
    always = huge_pages == HUGE_ALWAYS;
    limit_to_advised();
    present_pages = arena_pages(AT_ONCE / PAGE);
    return present_pages;
}

void ahead_forget(void) {
    for (uint32_t i = 0; i < WATCHED; i++)
        watches[i].life = 0;
    started = asleep = 0;
}
