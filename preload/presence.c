#include "presence.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "areas.h"
#include "arena.h"
#include "helper.h"
#include "lock.h"
#include "process.h"
#include "sys.h"
#include "text.h"

// A file is no longer than this: who makes and unmaps without end is known by then.
static const uint64_t FILE_BYTES = 16 << 20;
// What is farther behind in a range is not looked at: an address space that is reserved is far larger than memory.
static const uint64_t FAR = 128UL << 30;
enum { AT_ONCE = 64 << 20, LINE = 8 << 10, COUNTS = AT_ONCE / REGION };
// Who is killed tells nothing any more, so it is told from time to time: of what was there until an eighth of the time
// before, by a hundredth of a processor at most.
enum { SOONEST_NS = 250000000, OF_AGE = 8, OF_COST = 100 };

static const char *run_directory; // NULL: nothing is told
static char *line;
static unsigned char *present;
static uint64_t written;
static bool named; // the process, in its file
static bool forked;
static struct lock told_lock;
static uint32_t never; // for a wait that nobody ends but who has the helpers leave

static void append(void) {
    char path[4400];
    text_format(path, sizeof path, "%s/touched.%s.%lu.%lu", run_directory, process.host, process.pid, process.ticks);
    const uint64_t bytes = strlen(line);
    const long file = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    // What is written in part, on a full disk, is the last.
    written += sys(SYS_write, file, line, bytes) == (long)bytes ? bytes : FILE_BYTES;
    sys(SYS_close, file);
}

static void name_process(void) {
    process_forked();
    text_format(line, LINE, "process %lu %lu %lu %s\n", process.pid, process.ticks, process.namespace,
                process.executable);
    append();
    named = true;
}

// Neighbouring regions of which something is there.
static void tell(const struct area *area, uint64_t first, const uint32_t *counts, uint64_t count) {
    static const char *const kinds[] = {"mmap", "heap", "bss", "data"};
    if (!named)
        name_process();
    char which[16] = "-", ordinal[24] = "-";
    if (area->kind == ADVICE_MMAP) {
        text_format(which, sizeof which, "%u", area->size_class);
        text_format(ordinal, sizeof ordinal, "%lu", area->ordinal);
    }
    text_format(line, LINE, "%s %s %s %lu %lu", kinds[area->kind], area->object ? area->object : which, ordinal,
                area->origin, first);
    for (uint64_t i = 0; i < count; i++)
        text_format(line + strlen(line), 8, " %u", counts[i]);
    text_format(line + strlen(line), 2, "\n");
    append();
}

// What is beside it in the same region counts, too: neighbours share its huge page. There may be nothing.
static uint64_t widened(uint64_t edge, uint64_t region_edge) {
    const uint64_t low = least(edge, region_edge), bytes = (edge > region_edge ? edge : region_edge) - low;
    return sys_failed(sys(SYS_mincore, low, bytes, present)) ? edge : region_edge;
}

static void look(const struct area *area, uint64_t begin, uint64_t end) {
    begin = widened(begin, begin & -(uint64_t)REGION);
    end = widened(end, up(end, REGION));
    for (uint64_t at = begin, next; at < end; at = next) {
        next = least((at & -(uint64_t)AT_ONCE) + AT_ONCE, end);
        if (sys_failed(sys(SYS_mincore, at, next - at, present)))
            continue;
        uint32_t counts[COUNTS] = {0};
        const uint64_t first = at & -(uint64_t)REGION;
        for (uint64_t page = at; page < next; page += PAGE)
            counts[(page - first) / REGION] += present[(page - at) / PAGE] & 1;
        for (uint64_t i = 0, many; i < COUNTS; i += many + 1) {
            for (many = 0; i + many < COUNTS && counts[i + many]; many++)
                ;
            if (many && written < FILE_BYTES)
                tell(area, first + i * REGION, counts + i, many);
        }
    }
}

void presence_tell(uint64_t begin, uint64_t end) {
    // A handler of signals may give memory back, too.
    if (!run_directory || process.pid != sys(SYS_getpid) || !lock_soon(&told_lock))
        return;
    for (uint32_t i = 0; i < __atomic_load_n(&areas_used, __ATOMIC_SEQ_CST); i++) {
        const struct area area = areas[i];
        const uint64_t from = begin > area.begin ? begin : area.begin, to = least(end, area.end);
        if (area.life % 2 && from < to)
            look(&area, from, least(to, from + FAR));
    }
    lock_release(&told_lock);
}

void presence_tell_before_exec(void) {
    if (!forked || named)
        presence_tell(0, UINT64_MAX);
}

// In pieces, so that who gives memory back does not wait for long.
static void tell_all(void) {
    for (uint32_t i = 0; i < __atomic_load_n(&areas_used, __ATOMIC_SEQ_CST); i++) {
        const struct area area = areas[i];
        const uint64_t end = least(area.end, area.begin + FAR);
        for (uint64_t at = area.begin, next; area.life % 2 && at < end; at = next) {
            next = least((at & -(uint64_t)AT_ONCE) + AT_ONCE, end);
            presence_tell(at, next);
        }
    }
}

static void look_again(void) {
    const uint64_t began = now_ns();
    uint64_t cost = 0;
    while (!sandboxed) {
        uint64_t ns = (now_ns() - began) / OF_AGE;
        ns = ns > cost * OF_COST ? ns : cost * OF_COST;
        ns = ns > SOONEST_NS ? ns : SOONEST_NS;
        const struct timespec wait = {ns / 1000000000, ns % 1000000000};
        sys(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, &wait);
        helper_leaves();
        cost = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        tell_all();
        cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost;
    }
}

void presence_forget(void) {
    if (!run_directory)
        return;
    told_lock.state = 0;
    forked = true;
    named = false;
    written = 0;
    helper_start(look_again, &never);
}

void presence_begin(const char *directory) {
    // To go beyond it is a signal.
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
    line = arena(LINE);
    present = arena_pages(AT_ONCE / PAGE);
    if (files.rlim_cur <= 2 * FILE_BYTES || !line || !present)
        return;
    run_directory = directory;
    helper_start(look_again, &never);
}
