#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "eager.h"
#include "lease.h"
#include "prezero.h"
#include "process.h"
#include "serve.h"
#include "smaps.h"
#include "space.h"
#include "sys.h"
#include "told.h"
#include "units.h"
#include "vm.h"
#include "writers.h"

int (*next_fork)(void);

// Memory for a copy that may become huge pages.
static char *copy_space(uint64_t bytes) {
    uint64_t at = space(bytes, HUGE);
    if (!at)
        return NULL;
    if (sys_failed(sys(SYS_mprotect, at, bytes, PROT_READ | PROT_WRITE))) {
        sys(SYS_munmap, at, bytes);
        return NULL;
    }
    sys(SYS_madvise, at, bytes, MADV_HUGEPAGE);
    return (char *)at;
}

// Runs of pages that are in use, or that are not.
static uint32_t run_end(uint32_t unit, uint32_t from, bool live) {
    uint32_t to = from;
    while (to < UNIT / PAGE && unit_page_live(unit, to) == live)
        to++;
    return to;
}

static void copy_live(char *to, const char *from, uint32_t unit) {
    for (uint32_t i = 0, stop; i < UNIT / PAGE; i = stop) {
        stop = run_end(unit, i, true);
        memcpy(to + i * PAGE, from + i * PAGE, (uint64_t)(stop - i) * PAGE);
        stop = run_end(unit, stop, false);
    }
}

// What nobody has is not there.
static void unmap_rest(uint32_t unit, uint64_t at) {
    for (uint32_t i = 0, stop; i < UNIT / PAGE; i = stop) {
        i = run_end(unit, i, true);
        stop = run_end(unit, i, false);
        if (stop > i)
            sys(SYS_munmap, at + i * PAGE, (uint64_t)(stop - i) * PAGE);
    }
}

// Where other threads could not be held up, they went on writing while it was copied. What they wrote between the copy
// and the exchange is found by looking at the pool's memory again, when nobody can reach it any more; until then they
// do not see it.
static void carry_over(uint64_t *now, const uint64_t *copied, const uint64_t *last) {
    for (uint64_t i = 0; i < UNIT / sizeof *now; i++) {
        uint64_t expected = copied[i];
        if (last[i] != expected)
            __atomic_compare_exchange_n(&now[i], &expected, last[i], false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

static bool exchange(uint32_t number) {
    struct unit *unit = &units[number];
    char *view = unit_view(number), *copy = view ? copy_space(2 * UNIT) : NULL;
    bool done = false;
    if (copy) {
        int held = writers_hold(unit->address, UNIT);
        char *copied = copy + UNIT;
        memset(copied, 0, UNIT);
        copy_live(copied, view, number);
        memcpy(copy, copied, UNIT);
        long moved = sys(SYS_mremap, copy, UNIT, UNIT, MREMAP_MAYMOVE | MREMAP_FIXED, unit->address);
        if (!sys_failed(moved)) {
            carry_over((uint64_t *)moved, (uint64_t *)copied, (uint64_t *)view);
            if (unit->protection != (PROT_READ | PROT_WRITE))
                sys(SYS_mprotect, moved, UNIT, unit->protection);
            if (!unit->alone)
                unmap_rest(number, moved);
            told_passed(PASSED_TAKEN_BACK, UNIT);
            unit_forget(number);
            done = true;
        } else {
            sys(SYS_munmap, copy, UNIT);
        }
        writers_go_on(held);
        sys(SYS_munmap, copied, UNIT);
    }
    if (view)
        sys(SYS_munmap, view, UNIT);
    return done;
}

bool make_private(uint64_t begin, uint64_t end) {
    for (uint64_t at = units_next(begin, end); at < end; at = units_next(at, end)) {
        if (!exchange(unit_at(at)))
            return false;
        at = (at & -UNIT) + UNIT;
    }
    return true;
}

static bool copy_run(uint64_t at, uint32_t count, int protection) {
    const uint64_t bytes = count * UNIT;
    char *copy = copy_space(bytes);
    if (!copy || (!(protection & PROT_READ) && sys_failed(sys(SYS_mprotect, at, bytes, PROT_READ))))
        return false;
    for (uint32_t i = 0; i < count; i++)
        copy_live(copy + i * UNIT, (char *)at + i * UNIT, unit_at(at + i * UNIT));
    if (protection != (PROT_READ | PROT_WRITE))
        sys(SYS_mprotect, copy, bytes, protection);
    if (sys_failed(sys(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at)))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!units[unit_at(at + i * UNIT)].alone)
            unmap_rest(unit_at(at + i * UNIT), at + i * UNIT);
    return true;
}

static const uint64_t addresses_end = 1UL << 47;

// Where units that stand together and are alike end.
static uint64_t alike_end(uint64_t at) {
    const struct unit *first = &units[unit_at(at)];
    uint64_t next = at;
    for (; unit_at(next); next += UNIT) {
        const struct unit *unit = &units[unit_at(next)];
        if (unit->protection != first->protection || unit->not_forked != first->not_forked)
            break;
    }
    return next;
}

// In the child, alone.
static bool copy_all(void) {
    for (uint64_t at = units_next(0, addresses_end), next; at < addresses_end; at = units_next(next, addresses_end)) {
        const struct unit *first = &units[unit_at(at)];
        next = alike_end(at);
        if (first->not_forked)
            sys(SYS_munmap, at, next - at);
        else if (!copy_run(at, (next - at) / UNIT, first->protection))
            return false;
    }
    return true;
}

// /proc/self/task has a link for each thread, beside its own two. Counted by the kernel, since threads may be made by
// raw clone.
static bool is_single_threaded(void) {
    struct stat task;
    return !sys_failed(sys(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &task, 0)) && task.st_nlink == 3;
}

// In the parent before a fork, alone: its units become the kernel's memory, which parent and children share until one
// writes. Otherwise each child would copy all of them at once. The copy takes as long as one child's, and later forks
// copy nothing. Beside other threads the units stay: these threads could not be held up without failing their system
// calls. The caller's stack must not be in a unit, since it changes while it is copied. False: no memory.
static bool share_all(void) {
    for (uint64_t at = units_next(0, addresses_end), next; at < addresses_end; at = units_next(next, addresses_end)) {
        next = alike_end(at);
        if (units[unit_at(at)].not_forked)
            continue;
        if (!copy_run(at, (next - at) / UNIT, units[unit_at(at)].protection))
            return false;
        for (uint64_t unit = at; unit < next; unit += UNIT)
            unit_forget(unit_at(unit));
        told_passed(PASSED_FORKED, next - at);
    }
    return true;
}

// What mappings a range consists of, when they are alike: private, anonymous, of one protection, without a gap.
static struct {
    uint64_t at, end;
    int protection;
    bool alike;
} looked;

static void look(const struct mapping *mapping) {
    if (mapping->end <= looked.at || mapping->begin >= looked.end)
        return;
    bool first = looked.protection < 0;
    if (first)
        looked.protection = mapping->protection;
    bool anonymous = !mapping->shared && !mapping->inode;
    looked.alike &= anonymous && mapping->begin <= looked.at && mapping->protection == looked.protection;
    looked.at = mapping->end;
}

int private_protection(uint64_t begin, uint64_t bytes) {
    looked.at = begin;
    looked.end = begin + bytes;
    looked.protection = -1;
    looked.alike = true;
    bool alike = !smaps("/proc/thread-self/maps", look) && looked.alike && looked.at >= looked.end;
    return alike ? looked.protection : -1;
}

void *private_mremap(uint64_t begin, uint64_t old_bytes, uint64_t bytes, int flags, void *to) {
    errno = EFAULT;
    if (private_protection(begin, old_bytes) < 0)
        return MAP_FAILED;
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    bool fixed = flags & MREMAP_FIXED;
    if (!(flags & ~MREMAP_MAYMOVE) && bytes > old_bytes && space_at(looked.end, bytes - old_bytes, looked.protection))
        return (void *)begin;
    errno = ENOMEM;
    if (!(flags & MREMAP_MAYMOVE))
        return MAP_FAILED;
    char *copy = next_mmap(fixed ? to : NULL, bytes, PROT_READ | PROT_WRITE, kind | (fixed ? MAP_FIXED : 0), -1, 0);
    if (copy == MAP_FAILED)
        return copy;
    if (!(looked.protection & PROT_READ))
        sys(SYS_mprotect, begin, old_bytes, PROT_READ);
    memcpy(copy, (char *)begin, least(old_bytes, bytes));
    sys(SYS_mprotect, copy, bytes, looked.protection);
    if (flags & MREMAP_DONTUNMAP)
        next_mmap((void *)begin, old_bytes, looked.protection, kind | MAP_FIXED, -1, 0);
    else
        next_munmap((void *)begin, old_bytes);
    return copy;
}

enum { COPYING, COPIED, NO_MEMORY };

// The parent waits until the child has its copy, with libc's own locks held by both (they are, inside of fork): what
// its allocator looks like in between is not seen by the child. A child that is killed meanwhile ends the waiting.
static uint32_t await(uint32_t *state, int child) {
    uint32_t now;
    while ((now = __atomic_load_n(state, __ATOMIC_ACQUIRE)) == COPYING) {
        struct timespec soon = {.tv_nsec = 20000000};
        sys(SYS_futex, state, FUTEX_WAIT, COPYING, &soon);
        siginfo_t ended = {0};
        long gone = sys(SYS_waitid, P_PID, child, &ended, WEXITED | WNOHANG | WNOWAIT, 0);
        // Where SIGCHLD is ignored, nothing is left of it.
        if (ended.si_pid || gone == -ECHILD)
            return COPIED;
    }
    return now;
}

static void in_child(uint64_t held) {
    process_forked();
    prezero_forget();
    lease_forget();
    units_forget();
    told_forget();
    if (held)
        told_passed(PASSED_FORKED, held);
}

int private_fork(void) {
    serve_begin_exclusive();
    uint64_t began = now_ns();
    // Where there is no memory for it, there is none for a child's copy either: the fork below fails by that.
    const bool shares = told->pool_bytes && is_single_threaded() && !unit_at((uint64_t)__builtin_frame_address(0));
    if (shares)
        share_all();
    const uint64_t held = told->pool_bytes;
    uint32_t *state = NULL;
    if (held) {
        long page = sys(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (sys_failed(page)) {
            serve_end_exclusive();
            errno = ENOMEM;
            return -1;
        }
        state = (uint32_t *)page;
    }
    int child = next_fork();
    if (child == 0 && state) {
        bool copied = copy_all();
        __atomic_store_n(state, copied ? COPIED : NO_MEMORY, __ATOMIC_RELEASE);
        sys(SYS_futex, state, FUTEX_WAKE, 1);
        if (!copied)
            sys(SYS_exit_group, 127);
    }
    if (child > 0 && state && await(state, child) == NO_MEMORY) {
        sys(SYS_wait4, child, 0, 0, 0);
        errno = ENOMEM;
        child = -1;
    }
    if (child > 0 && state)
        told->copied_bytes += held;
    if (child > 0 && (state || shares)) {
        told->forks++;
        told->fork_ns += now_ns() - began;
    }
    if (state)
        sys(SYS_munmap, state, PAGE);
    if (child == 0)
        in_child(held);
    serve_end_exclusive();
    return child;
}
