// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* How the programs tell the reader: the ring, and what found no room in it. */
#ifndef BURSAR_EVENTS_BPF_H
#define BURSAR_EVENTS_BPF_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "job.h"

/* Wide enough for some events at the same moment on other processors. */
#define WAKEUP_BYTES 4096

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u64);
} lost SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, RING_BYTES);
} events SEC(".maps");

static __always_inline void lose(void) {
    u32 zero = 0;
    u64 *count = bpf_map_lookup_elem(&lost, &zero);
    if (count)
        __sync_fetch_and_add(count, 1);
}

/* The reader looks ten times a second; it is woken, which may cost 2 us in a virtual machine, when the ring gets half
 * full. */
static __always_inline u64 wakeup(void) {
    u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
    return waiting - RING_BYTES / 2 < WAKEUP_BYTES ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#endif
