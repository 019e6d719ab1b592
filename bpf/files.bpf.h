// SPDX-License-Identifier: (MIT OR Apache-2.0)
/* Files: what is needed of an inode, which are in the page cache at all, and their names. */
#ifndef BURSAR_FILES_BPF_H
#define BURSAR_FILES_BPF_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "events.bpf.h"

struct file_key {
    u64 inode;
    u32 device;
    u32 generation;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 32768);
    __type(key, struct file_key);
    __type(value, u8);
} files SEC(".maps");

/* Bytes and uses by class of what cannot be seen as references. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CLASSES);
    __type(key, u32);
    __type(value, struct hidden);
} hidden SEC(".maps");

/* Set before loading: which tracepoints of file systems are there. */
const volatile struct settings settings SEC(".rodata.settings") = {};

/* What is needed of an inode. Read at once, by plain loads where the verifier knows the pointer: they cost a tenth. */
struct facts {
    struct inode *inode;
    struct file_key key;
    u64 magic;
    s64 size;
    u32 flags;
};

/* For each pointer that is loaded so from a program's argument, the verifier searches all types of the kernel four
 * times (1 ms), on every path that it tries: load them once, before the paths part, and only where much is to be read.
 */
#define facts_known(i)                                                                                                 \
    ({                                                                                                                 \
        struct inode *_inode = (i);                                                                                    \
        struct super_block *_super = _inode->i_sb;                                                                     \
        (struct facts){                                                                                                \
            .inode = _inode,                                                                                           \
            .key = {.inode = _inode->i_ino, .device = _super->s_dev, .generation = _inode->i_generation},              \
            .magic = _super->s_magic,                                                                                  \
            .size = _inode->i_size,                                                                                    \
            .flags = _inode->i_flags,                                                                                  \
        };                                                                                                             \
    })

#define facts_probed(i)                                                                                                \
    ((struct facts){                                                                                                   \
        .inode = (i),                                                                                                  \
        .key = {.inode = BPF_CORE_READ(i, i_ino),                                                                      \
                .device = BPF_CORE_READ(i, i_sb, s_dev),                                                               \
                .generation = BPF_CORE_READ(i, i_generation)},                                                         \
        .magic = BPF_CORE_READ(i, i_sb, s_magic),                                                                      \
        .size = BPF_CORE_READ(i, i_size),                                                                              \
        .flags = BPF_CORE_READ(i, i_flags),                                                                            \
    })

/* File systems whose cache is not (only) the page cache of this machine, by the magic of their superblock. */
static __always_inline u32 class_of(const struct facts *facts) {
    if (facts->flags & S_DAX)
        return CLASS_DAX;
    switch (facts->magic) {
    case 0x01021994:
        return CLASS_TMPFS;
    case 0x858458f6:
        return CLASS_RAMFS;
    case 0x958458f6:
        return CLASS_HUGETLBFS;
    case 0x6969:
        return CLASS_NFS;
    case 0xff534d42:
    case 0xfe534d42:
    case 0x517b:
        return CLASS_CIFS;
    case 0x01021997:
        return CLASS_9P;
    case 0x65735546:
        return CLASS_FUSE;
    case 0x00c36400:
        return CLASS_CEPH;
    case 0x5346414f:
        return CLASS_AFS;
    case 0x0bd00bd0:
        return CLASS_LUSTRE;
    case 0x47504653:
        return CLASS_GPFS;
    case 0x2fc12fc1:
        return CLASS_ZFS;
    case 0x19830326:
        return CLASS_BEEGFS;
    default:
        return CLASS_PAGE_CACHE;
    }
}

static __always_inline void hide(u32 class, u64 bytes, bool bytes_known) {
    struct hidden *entry = bpf_map_lookup_elem(&hidden, &class);
    if (!entry)
        return;
    __sync_fetch_and_add(&entry->uses, 1);
    if (bytes_known)
        __sync_fetch_and_add(&entry->bytes, bytes);
    else
        entry->bytes_unknown = 1;
}

/* Tells a file's names, leaf first, when it is seen for the first time. */
static __always_inline void name_file(struct inode *inode, const struct file_key *key) {
    u8 seen = 1;
    /* Looking takes no lock. */
    if (bpf_map_lookup_elem(&files, key) || bpf_map_update_elem(&files, key, &seen, BPF_NOEXIST))
        return;
    struct event_file *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        bpf_map_delete_elem(&files, key);
        return;
    }
    event->type = EVENT_FILE;
    event->device = key->device;
    event->inode = key->inode;
    event->generation = key->generation;
    event->length = 0;
    struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
    if (alias && bpf_core_field_exists(struct dentry, d_u)) {
        struct dentry *dentry = (void *)alias - bpf_core_field_offset(struct dentry, d_u);
        u32 length = 0;
        for (int depth = 0; depth < MAX_DEPTH; depth++) {
            struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
            if (!parent || parent == dentry) {
                event->length = length;
                break;
            }
            const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
            /* Older verifiers (6.1) lose a bound that was tested on another copy: what is tested must be what is used.
             */
            u64 at = length;
            barrier_var(at);
            if (at > NAMES_BYTES)
                break;
            long got = bpf_probe_read_kernel_str(&event->names[at], NAME_BYTES, name);
            if (got <= 0 || got >= NAME_BYTES)
                break;
            length += got;
            dentry = parent;
        }
    }
    bpf_ringbuf_submit(event, wakeup());
}

static __always_inline bool same_file(const struct file_key *a, const struct file_key *b) {
    return a->inode == b->inode && a->device == b->device && a->generation == b->generation;
}

static __always_inline struct file *file_of(struct task_struct *task, u32 fd) {
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    if (fd >= BPF_CORE_READ(table, max_fds))
        return 0;
    struct file **open = BPF_CORE_READ(table, fd);
    struct file *file = 0;
    bpf_probe_read_kernel(&file, sizeof(file), &open[fd]);
    return file;
}

#endif
