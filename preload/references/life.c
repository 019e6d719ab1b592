#include "life.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "../abi.h"
#include "../process.h"
#include "../statm.h"
#include "../sys.h"
#include "../text.h"
#include "note.h"

static uint32_t number;         // by which this process or program is told
static uint64_t peak_before_kb; // of programs that the process was before

// The most that was resident of all looks: pages, with those of heap in the lower 32 bits. One word, as threads look at
// the same time.
static uint64_t largest;
static uint64_t most_heap;  // pages, of all looks
static uint64_t given_back; // bytes since the last look
enum { MUCH = 1 << 20 };

// The last look that was told: looks that follow one soon are told where there is more heap.
static uint32_t told_ms, told_heap;
enum { TELL_MS = 8, TELL_LEAST = (4 << 20) / PAGE };

static bool shares; // it may have shared memory mapped

void life_shares(void) {
    __atomic_store_n(&shares, true, __ATOMIC_RELAXED);
}

static void tell(enum process_part part, uint64_t value) {
    references_put(number, part, REFERENCE_PROCESS, value);
}

static void tell_heap(uint32_t heap) {
    uint32_t ms = now_ns() / 1000000, told = __atomic_load_n(&told_heap, __ATOMIC_RELAXED);
    bool soon = ms - __atomic_load_n(&told_ms, __ATOMIC_RELAXED) < TELL_MS;
    if (heap < TELL_LEAST || (soon && heap <= told + told / 8))
        return;
    __atomic_store_n(&told_ms, ms, __ATOMIC_RELAXED);
    __atomic_store_n(&told_heap, heap, __ATOMIC_RELAXED);
    tell(PROCESS_HEAP_AT, heap | (uint64_t)ms << 32);
}

static void look(void) {
    struct statm now;
    uint64_t bytes = statm_now(&now);
    if (!bytes)
        return;
    references_read(bytes);
    uint64_t resident = now.resident, heap = resident - now.shared;
    if (resident > __atomic_load_n(&largest, __ATOMIC_RELAXED) >> 32)
        __atomic_store_n(&largest, resident << 32 | heap, __ATOMIC_RELAXED);
    if (heap > __atomic_load_n(&most_heap, __ATOMIC_RELAXED))
        __atomic_store_n(&most_heap, heap, __ATOMIC_RELAXED);
    tell_heap(heap);
}

void life_gives_back(size_t bytes) {
    if (__atomic_add_fetch(&given_back, bytes, __ATOMIC_RELAXED) < MUCH)
        return;
    __atomic_store_n(&given_back, 0, __ATOMIC_RELAXED);
    look();
}

static struct rusage used(void) {
    struct rusage usage = {0};
    sys(SYS_getrusage, RUSAGE_SELF, &usage);
    return usage;
}

// "pid:[4026531836]". To read the link takes half the time of a stat; 0: it is not known.
static uint32_t pid_namespace(void) {
    char link[32] = "";
    sys(SYS_readlinkat, AT_FDCWD, "/proc/self/ns/pid", link, sizeof link - 1);
    const char *number = link + strcspn(link, "0123456789");
    return text_number(&number, 10);
}

void life_begin(bool forked) {
    uint64_t began = now_ns();
    // Two processes hardly begin with one number: 2^32 times the difference of their times decides.
    number = (began ^ (uint64_t)process.pid << 40) * 0x9E3779B97F4A7C15UL >> 32;
    peak_before_kb = used().ru_maxrss;
    largest = most_heap = given_back = 0;
    told_ms = told_heap = 0;
    tell(PROCESS_PID, (uint32_t)process.pid | (uint64_t)pid_namespace() << 32);
    tell(PROCESS_PARENT, sys(SYS_getppid));
    tell(PROCESS_BEGAN_NS, began);
    if (forked) {
        look();
        tell(PROCESS_INHERITED, most_heap);
    }
}

// The kernel keeps the largest of all programs that a process was. The child of a vfork had its parent's memory.
static uint64_t peak_kb(const struct rusage *usage) {
    if ((uint64_t)usage->ru_maxrss > peak_before_kb)
        return usage->ru_maxrss;
    // Some 20 microseconds.
    char status[4096];
    long bytes = text_of_file("/proc/thread-self/status", status, sizeof status);
    const char *at = bytes > 0 ? strstr(status, "VmHWM:") : NULL;
    if (!at)
        return 0;
    references_read(bytes);
    at += strcspn(at, "0123456789");
    return text_number(&at, 10);
}

static uint64_t without(uint64_t pages, uint64_t own) {
    return pages - least(pages, own);
}

static void tell_memory(const struct rusage *usage, struct own_pages own) {
    uint64_t peak = peak_kb(usage) * 1024;
    tell(PROCESS_OWN, own.all);
    if (peak)
        tell(PROCESS_PEAK_BYTES, without(peak, own.all * PAGE));
    look();
    tell(PROCESS_RESIDENT, without(largest >> 32, own.all));
    tell(PROCESS_HEAP, without((uint32_t)largest, own.heap));
    tell(PROCESS_MOST_HEAP, without(most_heap, own.heap));
    tell(PROCESS_SHARES, shares);
}

static uint64_t us(struct timeval time) {
    return time.tv_sec * 1000000UL + time.tv_usec;
}

void life_end(uint32_t status, struct own_pages own) {
    struct rusage usage = used();
    if (!usage.ru_maxrss)
        return; // in a sandbox
    uint64_t name[2] = {0};
    sys(SYS_prctl, PR_GET_NAME, name);
    tell_memory(&usage, own);
    tell(PROCESS_USER_US, us(usage.ru_utime));
    tell(PROCESS_SYSTEM_US, us(usage.ru_stime));
    tell(PROCESS_MINOR_FAULTS, usage.ru_minflt);
    tell(PROCESS_MAJOR_FAULTS, usage.ru_majflt);
    tell(PROCESS_NAME, name[0]);
    tell(PROCESS_NAME_REST, name[1]);
    tell(PROCESS_STATUS, status);
    tell(PROCESS_ENDED_NS, now_ns());
}
