// A lock without libc, for what is rare and short.
#pragma once

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys.h"

struct lock {
    uint32_t state; // 0 free, 1 taken, 2 taken and waited for
};

static inline bool lock_try(struct lock *lock) {
    uint32_t free = 0;
    return __atomic_compare_exchange_n(&lock->state, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void lock_take(struct lock *lock) {
    if (lock_try(lock))
        return;
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
        sys(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, 0);
}

// For what a handler of signals may come to, while its own thread holds the lock: false then.
static inline bool lock_soon(struct lock *lock) {
    for (int i = 0; i < 1000; i++) {
        if (lock_try(lock))
            return true;
        sys(SYS_sched_yield);
    }
    return false;
}

static inline void lock_release(struct lock *lock) {
    if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
        sys(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1);
}

// All there are, in the order in which they may be taken; fork takes them all, so that the child finds nothing half
// done.
extern struct lock comm_lock, reconcile_lock, smaps_lock, vm_lock, starts_lock, patch_lock, calls_lock, owners_lock,
    log_lock, arena_lock;
