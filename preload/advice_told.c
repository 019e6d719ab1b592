#include "advice_told.h"

#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "process.h"
#include "room.h"
#include "statm.h"
#include "sys.h"
#include "text.h"
#include "told_file.h"

static char directory[4096];
static struct advice_told nobody;
struct advice_told *advice_told = &nobody;
static bool tried;
static uint64_t began;
static const uint64_t SAMPLING = UINT64_MAX;
static uint64_t sample_at; // the next one, or SAMPLING

const char *advice_told_begin(void) {
    const char *set = getenv("BURSAR_ADVICE");
    if (!set)
        return NULL;
    began = now_ns();
    text_format(directory, sizeof directory, "%s", set);
    return directory;
}

void advice_told_open(void) {
    if (__atomic_exchange_n(&tried, true, __ATOMIC_ACQ_REL) || !*directory)
        return;
    process_forked();
    struct advice_told *opened = told_file(directory, "advice", sizeof *opened);
    if (!opened)
        return;
    memcpy(opened, advice_told, offsetof(struct advice_told, decision));
    memcpy(opened->decision, advice_told->decision,
           least(advice_told->decisions, ADVICE_DECISIONS) * sizeof *opened->decision);
    memcpy(opened->magic, ADVICE_MAGIC, sizeof opened->magic);
    opened->bytes = sizeof *opened;
    opened->pid = process.pid;
    opened->parent = process.parent;
    opened->ticks = process.ticks;
    opened->namespace = process.namespace;
    text_format(opened->executable, sizeof opened->executable, "%s", process.executable);
    __atomic_store_n(&advice_told, opened, __ATOMIC_RELEASE);
}

void advice_told_forget(void) {
    if (advice_told != &nobody)
        sys(SYS_munmap, advice_told, up(sizeof *advice_told, PAGE));
    memset(&nobody, 0, offsetof(struct advice_told, decision));
    advice_told = &nobody;
    tried = false;
    sample_at = 0;
}

void advice_tell(const struct area *area, struct advice_decision decision) {
    decision.t_ns = now_ns() - began;
    decision.from = decision.address - area->origin;
    decision.kind = area->kind;
    decision.size_class = area->size_class;
    decision.ordinal = area->ordinal;
    text_format(decision.object, sizeof decision.object, "%s", area->object ? area->object : "");
    uint64_t number = __atomic_fetch_add(&advice_told->decisions, 1, __ATOMIC_RELAXED);
    advice_told->decision[number % ADVICE_DECISIONS] = decision;
}

void advice_sample(void) {
    char text[2048];
    if (advice_told == &nobody || text_of_file("/proc/thread-self/smaps_rollup", text, sizeof text) <= 0)
        return;
    uint64_t huge = room_number(text, "\nAnonHugePages:"), anonymous = room_number(text, "\nAnonymous:");
    if (huge == UINT64_MAX || anonymous == UINT64_MAX)
        return;
    huge <<= 10;
    anonymous <<= 10;
    if (huge > advice_told->huge_bytes_peak)
        advice_told->huge_bytes_peak = huge;
    if (anonymous > advice_told->anonymous_bytes_peak)
        advice_told->anonymous_bytes_peak = anonymous;
}

uint64_t advice_sample_paced(void) {
    uint64_t due = __atomic_load_n(&sample_at, __ATOMIC_RELAXED), now = now_ns();
    if (due == SAMPLING)
        return 0;
    if (now < due)
        return due - now;
    if (!__atomic_compare_exchange_n(&sample_at, &due, SAMPLING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return 0;
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    advice_sample();
    uint64_t pace = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) * 200, soon = 50000000;
    __atomic_store_n(&sample_at, now_ns() + (pace > soon ? pace : soon), __ATOMIC_RELEASE);
    return 0;
}

void advice_sample_before_less(void) {
    struct statm now;
    if (advice_told == &nobody || !statm_now(&now))
        return;
    // A sample takes the longer the more pages there are.
    uint64_t peak = advice_told->anonymous_bytes_peak;
    if ((now.resident - now.shared) * PAGE > peak + peak / 8)
        advice_sample();
    else
        advice_sample_paced();
}
