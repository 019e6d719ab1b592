#include "told.h"

#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "sys.h"
#include "text.h"
#include "told_file.h"

static char directory[4096];
static struct provision_told nobody;
struct provision_told *told = &nobody;
static bool tried;

bool told_begin(void) {
    const char *set = getenv("BURSAR_PROVISION");
    if (set)
        text_format(directory, sizeof directory, "%s", set);
    return set;
}

void told_open(void) {
    if (tried || !*directory)
        return;
    tried = true;
    struct provision_told *opened = told_file(directory, "provision", sizeof *opened);
    if (!opened)
        return;
    *opened = *told;
    memcpy(opened->magic, PROVISION_MAGIC, sizeof opened->magic);
    opened->bytes = sizeof *opened;
    opened->pid = process.pid;
    opened->parent = process.parent;
    opened->ticks = process.ticks;
    opened->namespace = process.namespace;
    opened->rank_plus_1 = process.rank_plus_1;
    text_format(opened->executable, sizeof opened->executable, "%s", process.executable);
    told = opened;
}

void told_forget(void) {
    uint64_t node = told->node_plus_1;
    if (told != &nobody)
        sys(SYS_munmap, told, PAGE);
    memset(&nobody, 0, sizeof nobody);
    told = &nobody;
    told->node_plus_1 = node;
    tried = false;
}

void told_passed(enum passed reason, uint64_t bytes) {
    // A child of a fork that only calls exec has nothing to tell.
    if (bytes >= 64 << 10)
        told_open();
    __atomic_fetch_add(&told->passed[reason].calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&told->passed[reason].bytes, bytes, __ATOMIC_RELAXED);
    if (reason == PASSED_EXHAUSTED || reason == PASSED_CAP)
        __atomic_fetch_add(&told->fallbacks, 1, __ATOMIC_RELAXED);
}

static void most(uint64_t *peak, uint64_t now) {
    if (now > *peak)
        *peak = now;
}

void told_demand(int64_t bytes) {
    most(&told->demand_bytes_peak, __atomic_add_fetch(&told->demand_bytes, bytes, __ATOMIC_RELAXED));
}

void told_pool(int64_t bytes) {
    told_open();
    told->pool_bytes += bytes;
    most(&told->pool_bytes_peak, told->pool_bytes);
    told_demand(bytes);
}
