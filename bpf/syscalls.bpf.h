// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* Before 6.12: the references to the page cache through the results of the system calls; x86-64 only. */
#ifndef BURSAR_SYSCALLS_BPF_H
#define BURSAR_SYSCALLS_BPF_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "files.bpf.h"
#include "references.bpf.h"

#if defined(__TARGET_ARCH_x86)

/* `position`: where the call began; -1: where the file's own position ended. */
static __always_inline void transferred(struct task *task, struct task_struct *self, u32 fd, s64 position, s64 bytes,
                                        u32 kind) {
    struct file *file = file_of(self, fd);
    if (!file)
        return;
    struct inode *host = BPF_CORE_READ(file, f_mapping, host);
    u32 type = BPF_CORE_READ(host, i_mode) & S_IFMT;
    if (type != S_IFREG && type != S_IFBLK)
        return;
    u32 flags = BPF_CORE_READ(file, f_flags);
    if (flags & O_DIRECT) {
        hide(CLASS_DIRECT, bytes, 1);
        return;
    }
    if (kind == KIND_WRITE && (flags & O_APPEND))
        position = BPF_CORE_READ(host, i_size) - bytes;
    else if (position < 0)
        position = BPF_CORE_READ(file, f_pos) - bytes;
    if (position < 0)
        return;
    struct facts facts = facts_probed(host);
    refer(task, &facts, 0, position >> settings.page_shift, (position + bytes - 1) >> settings.page_shift, kind);
}

/* The kernel has moved the caller's offset on by what was transferred. */
static __always_inline s64 begin_by_pointer(unsigned long pointer, s64 bytes) {
    s64 end = 0;
    if (!pointer || bpf_probe_read_user(&end, sizeof(end), (void *)pointer))
        return -1;
    return end - bytes;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_returns, struct pt_regs *regs, long bytes) {
    if (bytes <= 0)
        return 0;
    unsigned long call = regs->orig_ax;
    switch (call) {
    case NR_READ:
    case NR_WRITE:
    case NR_PREAD64:
    case NR_PWRITE64:
    case NR_READV:
    case NR_WRITEV:
    case NR_SENDFILE:
    case NR_SPLICE:
    case NR_PREADV:
    case NR_PWRITEV:
    case NR_COPY_FILE_RANGE:
    case NR_PREADV2:
    case NR_PWRITEV2:
        break;
    default:
        return 0;
    }
    struct task *task = current_task();
    if (!task)
        return 0;
    struct task_struct *self = bpf_get_current_task_btf();
    if (self->thread_info.status & TS_COMPAT) {
        hide(CLASS_COMPAT, 0, 0);
        return 0;
    }
    switch (call) {
    case NR_READ:
    case NR_READV:
        transferred(task, self, regs->di, -1, bytes, KIND_READ);
        break;
    case NR_WRITE:
    case NR_WRITEV:
        transferred(task, self, regs->di, -1, bytes, KIND_WRITE);
        break;
    case NR_PREAD64:
    case NR_PREADV:
    case NR_PREADV2:
        transferred(task, self, regs->di, regs->r10, bytes, KIND_READ);
        break;
    case NR_PWRITE64:
    case NR_PWRITEV:
    case NR_PWRITEV2:
        transferred(task, self, regs->di, regs->r10, bytes, KIND_WRITE);
        break;
    case NR_SENDFILE:
        transferred(task, self, regs->si, begin_by_pointer(regs->dx, bytes), bytes, KIND_READ);
        transferred(task, self, regs->di, -1, bytes, KIND_WRITE);
        break;
    default:
        transferred(task, self, regs->di, begin_by_pointer(regs->si, bytes), bytes, KIND_READ);
        transferred(task, self, regs->dx, begin_by_pointer(regs->r10, bytes), bytes, KIND_WRITE);
        break;
    }
    return 0;
}

#endif

#endif
