// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* Which processes are the job. */
#ifndef BURSAR_MEMBERS_BPF_H
#define BURSAR_MEMBERS_BPF_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>

/* What a tgid of the job has come to; threads that exited are summed up. Mirrored in linux::bpf. */
struct process {
    u64 delay_ns;
    u64 thread_ns;
    u64 utime_ns;
    u64 stime_ns;
    u64 runtime_ns;
    u64 minor_faults;
    u64 major_faults;
    u32 delay_known;
    u32 dead;
    u64 replaced_maxrss;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, u32);
    __type(value, struct process);
} processes SEC(".maps");

static __always_inline bool in_job(void) {
    u32 tgid = bpf_get_current_pid_tgid() >> 32;
    return bpf_map_lookup_elem(&processes, &tgid) != 0;
}

#endif
