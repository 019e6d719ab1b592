// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* The numbers that a process has: one in each PID namespace that sees it. */
#ifndef BURSAR_NUMBERS_BPF_H
#define BURSAR_NUMBERS_BPF_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* PID namespaces within each other; the kernel allows 32. */
#define PID_LEVELS 8

/* A number of a process, and the PID namespace in which it is the process's. */
struct number {
    u32 pid;
    u32 namespace;
};

static __always_inline struct number number_at(struct pid *pid, u32 level) {
    struct upid found = {};
    void *at = (void *)pid + bpf_core_field_offset(struct pid, numbers) + level * sizeof(found);
    bpf_probe_read_kernel(&found, sizeof(found), at);
    struct number number = {.pid = found.nr, .namespace = BPF_CORE_READ(found.ns, ns.inum)};
    return number;
}

/* By which a process knows itself: its leader's number in its own namespace. */
static __always_inline struct number own_number(struct task_struct *leader) {
    struct pid *pid = BPF_CORE_READ(leader, thread_pid);
    return number_at(pid, BPF_CORE_READ(pid, level));
}

/* By which a process is known in a PID namespace, by its leader; 0: it is not seen there. Namespace 0 is the first one.
 */
static __always_inline u32 number_in(struct task_struct *leader, u32 namespace) {
    if (!namespace)
        return BPF_CORE_READ(leader, tgid);
    struct pid *pid = BPF_CORE_READ(leader, thread_pid);
    u32 deepest = BPF_CORE_READ(pid, level);
    for (u32 level = 1; level < PID_LEVELS && level <= deepest; level++) {
        struct number number = number_at(pid, level);
        if (number.namespace == namespace)
            return number.pid;
    }
    return 0;
}

#endif
