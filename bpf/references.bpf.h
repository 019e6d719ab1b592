// SPDX-License-Identifier: (MIT OR Apache-2.0)
/*
 * References to pages of files. What one task does is merged here as far as it can be without losing anything, so that
 * the common case costs two look-ups and no event.
 */
#ifndef BURSAR_REFERENCES_BPF_H
#define BURSAR_REFERENCES_BPF_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events.bpf.h"
#include "files.bpf.h"
#include "members.bpf.h"

/* More than filemap_get_pages takes at once, with the largest folios. */
#define MAX_UNTOLD (31 * 512)
/* Below this (0.1 to 1 s) the page is still at the top of the task's part of the stack. */
#define REPEAT_JIFFIES 100
#define MAX_ADDED_RUN 4096
/* The order of references of different tasks is exact to this many pages. */
#define MAX_RUN 32
#define MAX_RUN_JIFFIES 2

/* Pages added to the page cache by a task and not told yet. Mirrored in linux::bpf. */
struct added {
    u64 inode;
    u64 first;
    u32 device;
    u32 generation;
    u64 pages;
};

struct read {
    struct file_key file;
    u64 first;
    u64 last;
    u64 calls;
};

/* Pages referenced one after the other by a task and not told yet. Mirrored in linux::bpf. */
struct run {
    u64 inode;
    u64 first;
    u32 device;
    u32 generation;
    u64 time;
    u32 pages;
    u32 kind;
};

struct task {
    struct added added;
    struct run run;
    struct read read;
    u64 removed_mapping; /* of the run, where it is one of removals */
    /* the last reference */
    struct file_key file;
    u64 first;
    u64 last;
    u64 jiffies;
    u64 waits;
    u64 kind;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, u32);
    __type(value, struct task);
} tasks SEC(".maps");

/* 0: the current task is none of the job's. */
static __always_inline struct task *current_task(void) {
    u32 tid = bpf_get_current_pid_tgid();
    struct task *task = bpf_map_lookup_elem(&tasks, &tid);
    if (task || !in_job())
        return task;
    struct task fresh = {};
    bpf_map_update_elem(&tasks, &tid, &fresh, BPF_NOEXIST);
    task = bpf_map_lookup_elem(&tasks, &tid);
    if (!task)
        lose();
    return task;
}

/*
 * Of a read() that had to wait for a page the pages before it may not have been told (filemap_get_pages returns them
 * without its tracepoint): where the call began says which. A page that comes just before the task would have slept has
 * left no trace of the wait: where it costs nothing, it is asked each time.
 */
static __always_inline u64 begin_of_read(struct task_struct *self, struct address_space *mapping, u64 index,
                                         bool waited) {
#if defined(__TARGET_ARCH_x86)
    struct pt_regs *regs = (void *)bpf_task_pt_regs(self);
    s64 position = -1;
    if (self->thread_info.status & TS_COMPAT)
        return index;
    switch (regs->orig_ax) {
    case NR_PREAD64:
    case NR_PREADV:
    case NR_PREADV2:
        position = regs->r10;
        if (position >= 0)
            break;
    case NR_READ:
    case NR_READV: {
        if (!waited)
            return index;
        struct file *file = file_of(self, regs->di);
        if (file && BPF_CORE_READ(file, f_mapping) == mapping)
            position = BPF_CORE_READ(file, f_pos);
    }
    }
    u64 begin = position >> settings.page_shift;
    if (position >= 0 && begin < index && index - begin <= MAX_UNTOLD)
        return begin;
#endif
    return index;
}

static __always_inline void tell_run(struct run *run) {
    if (!run->pages)
        return;
    struct event_reference *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        lose();
    } else {
        event->type = EVENT_REFERENCE | run->kind << 8;
        event->device = run->device;
        event->inode = run->inode;
        event->time = run->time;
        event->first = run->first;
        event->pages = run->pages;
        event->generation = run->generation;
        bpf_ringbuf_submit(event, wakeup());
    }
    run->pages = 0;
}

/* `mapping`: of a read whose true begin may not have been told, else 0. */
static __always_inline void refer(struct task *task, const struct facts *facts, struct address_space *mapping,
                                  u64 first, u64 last, u32 kind) {
    if (kind != KIND_WRITE) {
        /* What was asked for beyond the end of the file is no page. A write moves the end only after it was told. */
        if (facts->size <= 0)
            return;
        u64 end = (u64)(facts->size - 1) >> settings.page_shift;
        if (last > end)
            last = end;
        if (first > last)
            return;
    }
    u32 class = class_of(facts);
    if (class != CLASS_PAGE_CACHE) {
        hide(class, (last - first + 1) << settings.page_shift, 1);
        return;
    }
    struct task_struct *self = bpf_get_current_task_btf();
    const struct file_key *key = &facts->key;
    u64 now = bpf_jiffies64();
    u64 waits = self->nvcsw;
    bool waited = task->waits != waits;
    task->waits = waits;
    if (mapping) {
        /* A long read() comes in pieces: the same end, a rising begin, and no call has returned between them. */
        struct read *read = &task->read;
        u64 calls = 0;
        if (bpf_core_field_exists(self->ioac))
            calls = self->ioac.syscr + self->ioac.syscw;
        if (read->calls == calls && read->last == last && read->first < first && same_file(&read->file, key))
            return;
        first = begin_of_read(self, mapping, first, waited);
        read->file = *key;
        read->first = first;
        read->last = last;
        read->calls = calls;
    }
    struct run *run = &task->run;
    if (!same_file(&task->file, key)) {
        tell_run(run);
        task->file = *key;
        name_file(facts->inode, key);
    } else if (task->kind == kind && now - task->jiffies < REPEAT_JIFFIES) {
        /* A page read in small pieces, or around which the kernel has just mapped, is referenced once. */
        task->jiffies = now;
        if (kind == KIND_FAULT) {
            if (first >= task->first && last <= task->last)
                return;
            if (first >= task->first && first <= task->last)
                first = task->last + 1;
        } else if (first == task->last) {
            if (last == first)
                return;
            first++;
        }
    }
    task->kind = kind;
    task->first = first;
    task->last = last;
    u64 pages = last - first + 1;
    if (run->pages && run->kind == kind && run->first + run->pages == first && run->pages + pages <= MAX_RUN &&
        now - task->jiffies < MAX_RUN_JIFFIES) {
        run->pages += pages;
        task->jiffies = now;
        return;
    }
    task->jiffies = now;
    tell_run(run);
    run->inode = key->inode;
    run->device = key->device;
    run->generation = key->generation;
    run->first = first;
    run->kind = kind;
    run->time = bpf_ktime_get_ns();
    run->pages = pages;
    if (pages >= MAX_RUN)
        tell_run(run);
}

/* For pointers that the verifier knows. */
#define refer_known(i, mapping, first, last, kind)                                                                     \
    do {                                                                                                               \
        struct facts _facts = facts_known(i);                                                                          \
        struct task *_task = current_task();                                                                           \
        if (_task)                                                                                                     \
            refer(_task, &_facts, mapping, first, last, kind);                                                         \
    } while (0)

static __always_inline void tell_added(struct added *added) {
    if (!added->pages)
        return;
    struct event_added *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        lose();
    } else {
        event->type = EVENT_ADDED;
        event->device = added->device;
        event->inode = added->inode;
        event->first = added->first;
        event->pages = added->pages;
        event->generation = added->generation;
        bpf_ringbuf_submit(event, wakeup());
    }
    added->pages = 0;
}

#endif
