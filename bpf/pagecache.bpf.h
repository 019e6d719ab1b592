// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* The references to the page cache, through its own tracepoints (Linux 6.12). */
#ifndef BURSAR_PAGECACHE_BPF_H
#define BURSAR_PAGECACHE_BPF_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "files.bpf.h"
#include "members.bpf.h"
#include "references.bpf.h"

static __always_inline u64 pages_of(struct folio *folio) {
    unsigned long flags = 0;
    /* The flags are the first word of a folio in every kernel; their type is not. */
    bpf_probe_read_kernel(&flags, sizeof(flags), folio);
    if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
        return 1;
    struct folio___byte *old = (void *)folio;
    if (bpf_core_field_exists(old->_folio_order))
        return 1ULL << (BPF_CORE_READ(old, _folio_order) & 31);
    return 1ULL << (BPF_CORE_READ(folio, _flags_1) & 31);
}

/* `last` is the last page asked for, not the one beyond it. */
SEC("tp_btf/mm_filemap_get_pages")
int BPF_PROG(pages_read, struct address_space *mapping, unsigned long index, unsigned long last) {
    refer_known(mapping->host, mapping, index, last, KIND_READ);
    return 0;
}

SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(page_faulted, struct address_space *mapping, unsigned long index) {
    refer_known(mapping->host, 0, index, index, KIND_FAULT);
    return 0;
}

/* A fault on a page that was cached maps its cached neighbours too, and marks them used: the kernel takes all as
 * referenced. */
SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(pages_mapped, struct address_space *mapping, unsigned long first, unsigned long last) {
    refer_known(mapping->host, 0, first, last, KIND_FAULT);
    return 0;
}

SEC("raw_tp/mm_filemap_add_to_page_cache")
int BPF_PROG(page_added, struct folio *folio) {
    struct task *task = current_task();
    if (!task)
        return 0;
    struct inode *inode = BPF_CORE_READ(folio, mapping, host);
    struct facts facts = facts_probed(inode);
    const struct file_key *key = &facts.key;
    struct added *added = &task->added;
    u64 first = BPF_CORE_READ(folio, index);
    u64 pages = pages_of(folio);
    if (added->pages && added->pages < MAX_ADDED_RUN && added->inode == key->inode && added->device == key->device &&
        added->generation == key->generation && added->first + added->pages == first) {
        added->pages += pages;
        return 0;
    }
    tell_added(added);
    added->inode = key->inode;
    added->device = key->device;
    added->generation = key->generation;
    added->first = first;
    added->pages = pages;
    return 0;
}

/*
 * Cut off, deleted with its file, or dropped at the program's own wish (POSIX_FADV_DONTNEED, direct writes). What
 * reclaim takes may come back, and is none: it has PF_MEMALLOC set whenever it works for a task.
 */
SEC("raw_tp/mm_filemap_delete_from_page_cache")
int BPF_PROG(page_removed, struct folio *folio) {
    struct task *task = current_task();
    if (!task || (bpf_get_current_task_btf()->flags & PF_MEMALLOC))
        return 0;
    struct run *run = &task->run;
    u64 mapping = (u64)BPF_CORE_READ(folio, mapping);
    u64 first = BPF_CORE_READ(folio, index);
    u32 pages = pages_of(folio);
    if (run->pages && run->kind == KIND_REMOVAL && task->removed_mapping == mapping &&
        run->first + run->pages == first && run->pages < MAX_ADDED_RUN) {
        run->pages += pages;
        return 0;
    }
    tell_run(run);
    struct inode *inode = BPF_CORE_READ(folio, mapping, host);
    struct facts facts = facts_probed(inode);
    if (class_of(&facts) != CLASS_PAGE_CACHE || facts.magic == MAGIC_BDEV)
        return 0;
    task->removed_mapping = mapping;
    task->kind = KIND_REMOVAL;
    run->inode = facts.key.inode;
    run->device = facts.key.device;
    run->generation = facts.key.generation;
    run->first = first;
    run->kind = KIND_REMOVAL;
    run->time = bpf_ktime_get_ns();
    run->pages = pages;
    return 0;
}

static __always_inline void written(struct task *task, const struct facts *facts, s64 position, s64 length) {
    if (task && length > 0 && position >= 0)
        refer(task, facts, 0, position >> settings.page_shift, (position + length - 1) >> settings.page_shift,
              KIND_WRITE);
}

/* Page by page as they are copied, so that a short write is not taken for a whole one. */
SEC("tp_btf/ext4_da_write_end")
int BPF_PROG(ext4_writes_delayed, struct inode *inode, s64 position, unsigned int length, unsigned int copied) {
    /* It never is, but newer verifiers take each argument of a module's for one that may be missing. */
    if (!inode)
        return 0;
    struct facts facts = facts_known(inode);
    written(current_task(), &facts, position, copied);
    return 0;
}

SEC("raw_tp/ext4_write_end")
int BPF_PROG(ext4_writes, struct inode *inode, s64 position, unsigned int length, unsigned int copied) {
    struct task *task = current_task();
    if (!task)
        return 0;
    struct facts facts = facts_probed(inode);
    written(task, &facts, position, copied);
    return 0;
}

SEC("raw_tp/xfs_file_buffered_write")
int BPF_PROG(xfs_writes, struct kiocb *call, struct iov_iter *data) {
    struct task *task = current_task();
    if (!task)
        return 0;
    struct inode *inode = BPF_CORE_READ(call, ki_filp, f_mapping, host);
    struct facts facts = facts_probed(inode);
    written(task, &facts, BPF_CORE_READ(call, ki_pos), BPF_CORE_READ(data, count));
    return 0;
}

/*
 * A clean page became dirty: a store through a mapping, or, on file systems without a tracepoint of their own, a
 * write(). Further writes to a page that is dirty already are not seen there; writeback cleans it within half a minute.
 */
SEC("raw_tp/writeback_dirty_folio")
int BPF_PROG(page_dirtied, struct folio *folio, struct address_space *mapping) {
    struct task *task = current_task();
    if (!task || !mapping)
        return 0;
    struct inode *inode = BPF_CORE_READ(mapping, host);
    struct facts facts = facts_probed(inode);
    u64 magic = facts.magic;
    if (magic == MAGIC_BDEV)
        return 0;
    u64 first = BPF_CORE_READ(folio, index);
    u64 last = first + pages_of(folio) - 1;
    if (same_file(&task->file, &facts.key) && first <= task->last && last >= task->first) {
        bool told = (magic == MAGIC_EXT && settings.ext4_writes) || (magic == MAGIC_XFS && settings.xfs_writes);
        if (task->kind == KIND_FAULT || (task->kind == KIND_WRITE && told))
            return 0;
    }
    refer(task, &facts, 0, first, last, KIND_WRITE);
    return 0;
}

SEC("raw_tp/iomap_dio_rw_begin")
int BPF_PROG(direct_begins, struct kiocb *call, struct iov_iter *data) {
    if (in_job())
        hide(CLASS_DIRECT, BPF_CORE_READ(data, count), 1);
    return 0;
}

#endif
