#include "advising.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "areas.h"
#include "process.h"
#include "room.h"
#include "sys.h"
#include "text.h"

static char directory[4096];
static struct advice_told nobody;
struct advice_told *advising_told = &nobody;
static bool tried;
static uint64_t began;

const char *advising_begin(void) {
    const char *set = getenv("BURSAR_ADVICE");
    if (!set)
        return NULL;
    began = now_ns();
    text_format(directory, sizeof directory, "%s", set);
    return directory;
}

static int create(void) {
    process_forked();
    char path[4400];
    int file = -EEXIST;
    // What exec makes of a process has one of its own.
    for (uint32_t life = 0; file == -EEXIST && life < 1000; life++) {
        text_format(path, sizeof path, "%s/advice.%s.%lu.%lu", directory, process.host, process.pid, process.ticks);
        if (life)
            text_format(path + strlen(path), sizeof path - strlen(path), ".%u", life);
        file = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    return file;
}

void advising_open(void) {
    if (__atomic_exchange_n(&tried, true, __ATOMIC_ACQ_REL) || !*directory)
        return;
    const uint64_t bytes = up(sizeof *advising_told, PAGE);
    // To go beyond it is a signal.
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
    int file = files.rlim_cur < bytes ? -EFBIG : create();
    if (file < 0)
        return;
    // Blocks, not a hole: a full disk is told here, and not by a signal later.
    static const char zeroes[PAGE];
    bool there = true;
    for (uint64_t at = 0; at < bytes && there; at += PAGE)
        there = sys(SYS_pwrite64, file, zeroes, PAGE, at) == PAGE;
    long pages = there ? sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : -ENOSPC;
    sys(SYS_close, file);
    if (sys_failed(pages))
        return;
    struct advice_told *opened = (struct advice_told *)pages;
    memcpy(opened, advising_told, offsetof(struct advice_told, decision));
    memcpy(opened->decision, advising_told->decision,
           least(advising_told->decisions, ADVICE_DECISIONS) * sizeof *opened->decision);
    memcpy(opened->magic, "BURADVC1", sizeof opened->magic);
    opened->bytes = sizeof *opened;
    opened->pid = process.pid;
    opened->parent = process.parent;
    opened->ticks = process.ticks;
    text_format(opened->executable, sizeof opened->executable, "%s", process.executable);
    __atomic_store_n(&advising_told, opened, __ATOMIC_RELEASE);
}

void advising_forget(void) {
    if (advising_told != &nobody)
        sys(SYS_munmap, advising_told, up(sizeof *advising_told, PAGE));
    memset(&nobody, 0, offsetof(struct advice_told, decision));
    advising_told = &nobody;
    tried = false;
}

void advising_tell(const struct area *area, struct advice_decision decision) {
    decision.t_ns = now_ns() - began;
    decision.from = decision.address - area->origin;
    decision.kind = area->kind;
    decision.size_class = area->size_class;
    decision.ordinal = area->ordinal;
    text_format(decision.object, sizeof decision.object, "%s", area->object ? area->object : "");
    uint64_t number = __atomic_fetch_add(&advising_told->decisions, 1, __ATOMIC_RELAXED);
    advising_told->decision[number % ADVICE_DECISIONS] = decision;
}

void advising_sample(void) {
    char text[2048];
    if (advising_told == &nobody || text_of_file("/proc/self/smaps_rollup", text, sizeof text) <= 0)
        return;
    uint64_t huge = room_number(text, "\nAnonHugePages:"), anonymous = room_number(text, "\nAnonymous:");
    if (huge == UINT64_MAX || anonymous == UINT64_MAX)
        return;
    huge <<= 10;
    anonymous <<= 10;
    if (huge > advising_told->huge_bytes_peak)
        advising_told->huge_bytes_peak = huge;
    if (anonymous > advising_told->anonymous_bytes_peak)
        advising_told->anonymous_bytes_peak = anonymous;
}
