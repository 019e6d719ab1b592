// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* Who is forked, what is executed, and what each process had used when it exited. */
#ifndef BURSAR_PROCESSES_BPF_H
#define BURSAR_PROCESSES_BPF_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events.bpf.h"
#include "files.bpf.h"
#include "members.bpf.h"
#include "references.bpf.h"

/* Of the descriptors a process has open, so many are looked at. */
#define MAX_OPEN 256

SEC("raw_tp/sched_process_fork")
int BPF_PROG(process_forks, struct task_struct *parent, struct task_struct *child) {
    u32 tgid = BPF_CORE_READ(child, tgid);
    u32 parent_tgid = BPF_CORE_READ(parent, tgid);
    if (tgid == parent_tgid || !process_of(parent, parent_tgid))
        return 0;
    struct process fresh = {.pid = settings.pid_namespace ? number_for_reader(child) : 0};
    if (bpf_map_update_elem(&processes, &tgid, &fresh, BPF_ANY)) {
        lose();
        return 0;
    }
    struct event_fork *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        lose();
        return 0;
    }
    event->type = EVENT_FORK;
    struct number own = own_number(child);
    event->pid = fresh.pid ? fresh.pid : tgid;
    event->parent = number_for_reader(BPF_CORE_READ(parent, group_leader));
    event->own_pid = own.pid;
    event->pid_namespace = own.namespace;
    event->pad = 0;
    event->start_time = BPF_CORE_READ(child, start_time);
    event->start_boottime = BPF_CORE_READ(child, start_boottime);
    BPF_CORE_READ_STR_INTO(&event->comm, child, comm);
    bpf_ringbuf_submit(event, wakeup());
    return 0;
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(process_executes, struct task_struct *task, int old_pid, struct linux_binprm *bprm) {
    u32 tgid = BPF_CORE_READ(task, tgid);
    u32 old = old_pid;
    struct process *process = process_of(task, tgid);
    if (!process)
        return 0;
    /* The peak of the image that was replaced, often a copy of the parent's; exec keeps it (wait4 tells the larger). */
    process->replaced_maxrss = BPF_CORE_READ(task, signal, maxrss);
    if (old != tgid) {
        /* A thread that was not the leader takes the leader's number. */
        struct task *former = bpf_map_lookup_elem(&tasks, &old);
        if (former) {
            tell_run(&former->run);
            tell_added(&former->added);
        }
        bpf_map_delete_elem(&tasks, &old);
    }
    struct event_exec *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        lose();
        return 0;
    }
    event->type = EVENT_EXEC;
    event->pid = process->pid ? process->pid : tgid;
    BPF_CORE_READ_STR_INTO(&event->comm, task, comm);
    bpf_ringbuf_submit(event, wakeup());
    return 0;
}

struct open_files {
    unsigned long *open;
    struct file **files;
};

static long look_at_open_file(u32 fd, struct open_files *all) {
    unsigned long bits = 0;
    bpf_probe_read_kernel(&bits, sizeof(bits), &all->open[fd / 64]);
    if (!(bits >> (fd % 64) & 1))
        return 0;
    struct file *file = 0;
    bpf_probe_read_kernel(&file, sizeof(file), &all->files[fd]);
    if (!file)
        return 0;
    struct inode *inode = BPF_CORE_READ(file, f_mapping, host);
    if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
        return 0;
    struct facts facts = facts_probed(inode);
    u32 class = class_of(&facts);
    /* The others are told with their bytes when they are read or written. */
    switch (class) {
    case CLASS_PAGE_CACHE:
        if (settings.direct || !(BPF_CORE_READ(file, f_flags) & O_DIRECT))
            return 0;
        class = CLASS_DIRECT;
        break;
    case CLASS_DAX:
    case CLASS_TMPFS:
    case CLASS_HUGETLBFS:
    case CLASS_LUSTRE:
    case CLASS_GPFS:
    case CLASS_ZFS:
    case CLASS_BEEGFS:
        break;
    default:
        return 0;
    }
    hide(class, 0, 0);
    return 0;
}

/* Names what a process has open that the page cache's tracepoints do not tell of. */
static __always_inline void look_at_open_files(struct task_struct *task) {
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct open_files all = {.open = BPF_CORE_READ(table, open_fds), .files = BPF_CORE_READ(table, fd)};
    u32 most = BPF_CORE_READ(table, max_fds);
    /* Since 5.17; a loop without it takes the verifier too long. */
    if (bpf_core_enum_value_exists(enum bpf_func_id___loop, BPF_FUNC_loop___known))
        bpf_loop(most < MAX_OPEN ? most : MAX_OPEN, look_at_open_file, &all, 0);
}

/*
 * The peak of the image that the process had last, in pages: `most`, which is signal->maxrss, unless that is still the
 * replaced image's. Then the mm knows, but for what each processor has not yet told (rss_stat's batches). Where neither
 * can be had, the replaced image's, as wait4 would say.
 */
static __always_inline u64 own_maxrss(struct task_struct *task, u64 most, struct process *process) {
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    if (most > process->replaced_maxrss || !mm || !bpf_core_field_exists(mm->rss_stat[0].count))
        return most;
    /* 2 is swap. */
    s64 file = BPF_CORE_READ(mm, rss_stat[0].count);
    s64 heap = BPF_CORE_READ(mm, rss_stat[1].count);
    s64 shared = BPF_CORE_READ(mm, rss_stat[3].count);
    u64 rss = (file > 0 ? file : 0) + (heap > 0 ? heap : 0) + (shared > 0 ? shared : 0);
    u64 high = BPF_CORE_READ(mm, hiwater_rss);
    u64 own = high > rss ? high : rss;
    return own && own < most ? own : most;
}

/*
 * Fired once per thread, after signal->live was counted down and signal->maxrss was raised to the mm's high-water mark
 * (do_exit does both first in every kernel; whether exit_mm comes before or after this tracepoint has changed, so the
 * mm is looked at only where it is still there).
 */
SEC("raw_tp/sched_process_exit")
int BPF_PROG(thread_exits, struct task_struct *task) {
    u32 tgid = BPF_CORE_READ(task, tgid);
    u32 tid = BPF_CORE_READ(task, pid);
    struct process *process = process_of(task, tgid);
    if (!process)
        return 0;
    struct signal_struct *signal = BPF_CORE_READ(task, signal);
    struct task_struct *leader = BPF_CORE_READ(task, group_leader);
    struct task *state = bpf_map_lookup_elem(&tasks, &tid);
    if (state) {
        tell_run(&state->run);
        tell_added(&state->added);
    }
    bpf_map_delete_elem(&tasks, &tid);

    u64 now = bpf_ktime_get_ns();
    u64 utime = BPF_CORE_READ(task, utime);
    u64 stime = BPF_CORE_READ(task, stime);
    u64 runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
    u64 minor_faults = BPF_CORE_READ(task, min_flt);
    u64 major_faults = BPF_CORE_READ(task, maj_flt);
    u64 life = now - BPF_CORE_READ(task, start_time);
    __sync_fetch_and_add(&process->thread_ns, life);
    __sync_fetch_and_add(&process->utime_ns, utime);
    __sync_fetch_and_add(&process->stime_ns, stime);
    __sync_fetch_and_add(&process->runtime_ns, runtime);
    __sync_fetch_and_add(&process->minor_faults, minor_faults);
    __sync_fetch_and_add(&process->major_faults, major_faults);
    /* Only tasks born while delay accounting was on have it. */
    if (bpf_core_field_exists(task->delays)) {
        struct task_delay_info *delays = BPF_CORE_READ(task, delays);
        if (delays && bpf_core_field_exists(delays->blkio_delay)) {
            u64 delay = BPF_CORE_READ(delays, blkio_delay);
            /* The kernel sometimes ends a delay that it never began: it then counts from boot. */
            if (delay <= life)
                __sync_fetch_and_add(&process->delay_ns, delay);
            process->delay_known = 1;
        }
    }

    if (BPF_CORE_READ(signal, live.counter) != 0)
        return 0;
    /* Two last threads may both find 0 here. */
    if (__sync_lock_test_and_set(&process->dead, 1))
        return 0;
    look_at_open_files(task);
    struct event_exit *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        lose();
        return 0;
    }
    struct number own = own_number(leader);
    event->type = EVENT_EXIT;
    event->pid = process->pid ? process->pid : tgid;
    event->parent = number_for_reader(BPF_CORE_READ(task, real_parent, group_leader));
    event->own_pid = own.pid;
    event->pid_namespace = own.namespace;
    event->key = tgid;
    event->pad = 0;
    event->exit_code = BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(signal, group_exit_code)
                                                                        : BPF_CORE_READ(leader, exit_code);
    event->time = now;
    event->start_time = BPF_CORE_READ(leader, start_time);
    event->start_boottime = BPF_CORE_READ(leader, start_boottime);
    event->maxrss_pages = own_maxrss(task, BPF_CORE_READ(signal, maxrss), process);
    event->utime_ns = BPF_CORE_READ(signal, utime) + utime;
    event->stime_ns = BPF_CORE_READ(signal, stime) + stime;
    event->runtime_ns = BPF_CORE_READ(signal, sum_sched_runtime) + runtime;
    event->minor_faults = BPF_CORE_READ(signal, min_flt) + minor_faults;
    event->major_faults = BPF_CORE_READ(signal, maj_flt) + major_faults;
    BPF_CORE_READ_STR_INTO(&event->comm, leader, comm);
    bpf_ringbuf_submit(event, wakeup());
    return 0;
}

#endif
