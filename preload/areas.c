#include "areas.h"

#include <string.h>

#include "process.h"
#include "sys.h"

struct area areas[AREAS];
uint32_t areas_used, areas_most = WATCHED;

// Where the helper is; an end of 0: nowhere.
static uint64_t busy_begin, busy_end;

bool areas_enter(int place, uint32_t life, uint64_t begin, uint64_t end) {
    __atomic_store_n(&busy_begin, begin, __ATOMIC_SEQ_CST);
    __atomic_store_n(&busy_end, end, __ATOMIC_SEQ_CST);
    struct area *area = &areas[place];
    if (__atomic_load_n(&area->life, __ATOMIC_SEQ_CST) == life &&
        __atomic_load_n(&area->end, __ATOMIC_SEQ_CST) >= end && area->begin <= begin)
        return true;
    areas_leave();
    return false;
}

void areas_leave(void) {
    __atomic_store_n(&busy_end, 0, __ATOMIC_SEQ_CST);
}

// It is there for one call of the kernel, about one region.
static void await_leaving(uint64_t begin, uint64_t end) {
    for (;;) {
        uint64_t to = __atomic_load_n(&busy_end, __ATOMIC_SEQ_CST);
        uint64_t from = __atomic_load_n(&busy_begin, __ATOMIC_SEQ_CST);
        // Of a process that was copied while it was there, it never leaves.
        if (!to || from >= end || to <= begin || sys(SYS_getpid) != process.pid)
            return;
        struct timespec soon = {.tv_nsec = 20000};
        sys(SYS_nanosleep, &soon, 0);
    }
}

int areas_add(struct area area) {
    for (uint32_t i = 0; i < areas_most; i++) {
        uint32_t life = __atomic_load_n(&areas[i].life, __ATOMIC_RELAXED);
        // Twice even: it is being written.
        if (life % 4 ||
            !__atomic_compare_exchange_n(&areas[i].life, &life, life + 2, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        area.life = life + 2;
        areas[i] = area;
        uint32_t used = __atomic_load_n(&areas_used, __ATOMIC_RELAXED);
        while (used < i + 1 &&
               !__atomic_compare_exchange_n(&areas_used, &used, i + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            ;
        __atomic_store_n(&areas[i].life, life + 3, __ATOMIC_SEQ_CST);
        return i;
    }
    return -1;
}

void areas_resize(int place, uint64_t end) {
    uint64_t before = __atomic_exchange_n(&areas[place].end, end, __ATOMIC_SEQ_CST);
    if (end < before)
        await_leaving(end, before);
}

void areas_remove(uint64_t begin, uint64_t end, uint64_t least_bytes) {
    bool any = false;
    uint32_t used = __atomic_load_n(&areas_used, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < used; i++) {
        struct area area = areas[i];
        if (area.life % 2 == 0 || area.begin >= end || area.end <= begin)
            continue;
        uint32_t life = area.life;
        if (!__atomic_compare_exchange_n(&areas[i].life, &life, life + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            continue;
        any = true;
        struct area before = area, behind = area;
        before.end = begin;
        behind.begin = end;
        behind.alike = before.alike = false;
        if (begin > area.begin && begin - area.begin >= least_bytes)
            areas_add(before);
        if (area.end > end && area.end - end >= least_bytes)
            areas_add(behind);
    }
    if (any)
        await_leaving(begin, end);
}

void areas_renew(uint64_t begin, uint64_t end) {
    for (uint32_t i = 0; i < __atomic_load_n(&areas_used, __ATOMIC_SEQ_CST); i++) {
        uint32_t life = __atomic_load_n(&areas[i].life, __ATOMIC_SEQ_CST);
        if (life % 2 && areas[i].begin < end && areas[i].end > begin)
            __atomic_compare_exchange_n(&areas[i].life, &life, life + 4, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}

void areas_forget(void) {
    memset(areas, 0, areas_used * sizeof *areas);
    areas_used = 0;
    busy_end = 0;
}
