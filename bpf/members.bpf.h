// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* Which processes are the job. */
#ifndef BURSAR_MEMBERS_BPF_H
#define BURSAR_MEMBERS_BPF_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "files.bpf.h"
#include "numbers.bpf.h"

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
    u32 pid; /* the reader's number for it; 0: the kernel's */
    u32 pad;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, u32);
    __type(value, struct process);
} processes SEC(".maps");

/* Processes to be followed, by the reader's numbers, where these are not the kernel's. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, u32);
    __type(value, u32);
} wanted SEC(".maps");

/* By which the reader knows it; 0: it does not see it. */
static __always_inline u32 number_for_reader(struct task_struct *leader) {
    return number_in(leader, settings.pid_namespace);
}

/* What is known of the process of a task; 0: it is none of the job's. */
static __always_inline struct process *process_of(struct task_struct *task, u32 tgid) {
    struct process *process = bpf_map_lookup_elem(&processes, &tgid);
    if (process || !settings.pid_namespace)
        return process;
    u32 number = number_for_reader(BPF_CORE_READ(task, group_leader));
    if (!number || !bpf_map_lookup_elem(&wanted, &number))
        return 0;
    struct process fresh = {.pid = number};
    bpf_map_update_elem(&processes, &tgid, &fresh, BPF_NOEXIST);
    bpf_map_delete_elem(&wanted, &number);
    return bpf_map_lookup_elem(&processes, &tgid);
}

static __always_inline bool in_job(void) {
    return process_of((struct task_struct *)bpf_get_current_task(), bpf_get_current_pid_tgid() >> 32) != 0;
}

#endif
