#include "moved.h"

#include <stdint.h>
#include <sys/resource.h>

#include "heap.h"
#include "runtime.h"
#include "statm.h"
#include "sys.h"

enum { PAGES = 16, BYTES = 1 << 20 };

struct signs {
    uint64_t faults, resident, shared;
    int64_t live[COMPONENTS];
};

static struct signs then, at_look;
static uint64_t known; // pages that were resident when `memory_still` was called or `memory_grew` true; of any thread

static struct signs signs_now(void) {
    struct signs now = {0};
    struct rusage usage;
    if (!sys_failed(sys(SYS_getrusage, RUSAGE_SELF, &usage)))
        now.faults = usage.ru_minflt + usage.ru_majflt;
    struct statm statm;
    if (statm_now(&statm)) {
        now.resident = statm.resident;
        now.shared = statm.shared;
    }
    for (uint32_t i = 0; i < COMPONENTS; i++)
        now.live[i] = __atomic_load_n(&live[i], __ATOMIC_RELAXED);
    return now;
}

static bool apart(int64_t difference, int64_t allowed) {
    return difference > allowed || difference < -allowed;
}

bool memory_moved(void) {
    struct signs now = signs_now();
    // One fault may bring a page of the pool, which is in no size.
    bool moved = now.faults != then.faults || apart(now.resident - then.resident, PAGES) ||
                 apart(now.shared - then.shared, PAGES);
    for (uint32_t i = 0; i < COMPONENTS; i++)
        moved |= apart(now.live[i] - then.live[i], BYTES);
    return moved;
}

void memory_still(void) {
    then = signs_now();
    __atomic_store_n(&known, then.resident, __ATOMIC_RELAXED);
}

bool memory_grew(void) {
    uint64_t now = signs_now().resident;
    bool grew = now * PAGE > __atomic_load_n(&known, __ATOMIC_RELAXED) * PAGE + BYTES;
    if (grew)
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    return grew;
}

void memory_looked(void) {
    at_look = signs_now();
}

uint64_t memory_grown(uint64_t grown[COMPONENTS]) {
    const struct signs now = signs_now();
    const int64_t resident = (now.resident - now.shared) - (at_look.resident - at_look.shared);
    uint64_t all = 0;
    for (uint32_t i = 0; i < COMPONENTS; i++) {
        const int64_t bytes = now.live[i] - at_look.live[i];
        grown[i] = bytes > 0 ? bytes : 0;
        all += grown[i];
    }
    // What one of them has obtained may not be resident: as much of the others' is certain as all of its own leaves.
    const uint64_t most = resident > 0 ? resident * PAGE : 0;
    uint64_t certain = 0;
    for (uint32_t i = 0; i < COMPONENTS; i++) {
        const uint64_t others = all - grown[i];
        grown[i] = least(grown[i], most > others ? most - others : 0);
        certain += grown[i];
    }
    return certain;
}
