#include "told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "process.h"
#include "sys.h"
#include "text.h"

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
    // To go beyond it is a signal.
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
    if (files.rlim_cur < PAGE)
        return;
    char path[4400];
    int file = -EEXIST;
    // What exec makes of a process has one of its own.
    for (uint32_t life = 0; file == -EEXIST && life < 1000; life++) {
        text_format(path, sizeof path, "%s/provision.%s.%lu.%lu", directory, process.host, process.pid, process.ticks);
        if (life)
            text_format(path + strlen(path), sizeof path - strlen(path), ".%u", life);
        file = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (file < 0)
        return;
    long page = -1;
    // Blocks, not a hole: a full disk is told here, and not by a signal later.
    static const char zeroes[PAGE];
    if (sys(SYS_pwrite64, file, zeroes, PAGE, 0) == PAGE)
        page = sys(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    sys(SYS_close, file);
    if (sys_failed(page))
        return;
    struct provision_told *opened = (struct provision_told *)page;
    *opened = *told;
    memcpy(opened->magic, "BURTOLD1", sizeof opened->magic);
    opened->bytes = sizeof *opened;
    opened->pid = process.pid;
    opened->parent = process.parent;
    opened->ticks = process.ticks;
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
