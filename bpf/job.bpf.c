// SPDX-License-Identifier: (MIT OR Apache-2.0)
/*
 * Follows the processes of a job: who is forked, what is executed, what each one had used when it exited; and the
 * references they make to the page cache. Only tp_btf programs: unlike fentry they load wherever BTF is, lockdown
 * aside.
 *
 * What one task does is merged here as far as it can be without losing anything, so that the common case costs two
 * look-ups and no event.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "job.h"

/* bpf_get_stackid and others are GPL only, as is the reading of kernel memory. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_DAX (1 << 13)
#define SIGNAL_GROUP_EXIT 4
#define O_APPEND 02000
#define O_DIRECT 040000 /* x86; elsewhere only asked where iomap tells nothing */
#define MAGIC_EXT 0xef53
#define MAGIC_XFS 0x58465342
#define MAGIC_BDEV 0x62646576
#define MAX_OPEN 256
/* x86-64 */
#define TS_COMPAT 2
#define NR_READ 0
#define NR_WRITE 1
#define NR_PREAD64 17
#define NR_PWRITE64 18
#define NR_READV 19
#define NR_WRITEV 20
#define NR_SENDFILE 40
#define NR_SPLICE 275
#define NR_PREADV 295
#define NR_PWRITEV 296
#define NR_COPY_FILE_RANGE 326
#define NR_PREADV2 327
#define NR_PWRITEV2 328

/* More than filemap_get_pages takes at once, with the largest folios. */
#define MAX_UNTOLD (31 * 512)
/* Below this (0.1 to 1 s) the page is still at the top of the task's part of the stack. */
#define REPEAT_JIFFIES 100
/* Wide enough for some events at the same moment on other processors. */
#define WAKEUP_BYTES 4096
#define MAX_ADDED_RUN 4096
/* The order of references of different tasks is exact to this many pages. */
#define MAX_RUN 32
#define MAX_RUN_JIFFIES 2

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

/* Pages added to the page cache by a task and not told yet. Mirrored in linux::bpf. */
struct added {
    u64 inode;
    u64 first;
    u32 device;
    u32 generation;
    u64 pages;
};

struct file_key {
    u64 inode;
    u32 device;
    u32 generation;
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
    __uint(max_entries, 262144);
    __type(key, u32);
    __type(value, struct process);
} processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 262144);
    __type(key, u32);
    __type(value, struct task);
} tasks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1048576);
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

/* Set before loading: which tracepoints of file systems are there. */
const volatile struct settings settings SEC(".rodata.settings") = {};

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

static __always_inline bool in_job(void) {
    u32 tgid = bpf_get_current_pid_tgid() >> 32;
    return bpf_map_lookup_elem(&processes, &tgid) != 0;
}

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

/* What is needed of an inode. Read at once, by plain loads where the verifier knows the pointer: they cost a tenth. */
struct facts {
    struct inode *inode;
    struct file_key key;
    u64 magic;
    s64 size;
    u32 flags;
};

#define facts_known(i)                                                                                                 \
    ((struct facts){                                                                                                   \
        .inode = (i),                                                                                                  \
        .key = {.inode = (i)->i_ino, .device = (i)->i_sb->s_dev, .generation = (i)->i_generation},                     \
        .magic = (i)->i_sb->s_magic,                                                                                   \
        .size = (i)->i_size,                                                                                           \
        .flags = (i)->i_flags,                                                                                         \
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
    if (bpf_map_update_elem(&files, key, &seen, BPF_NOEXIST))
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

/*
 * Of a read() that had to wait for a page the pages before it may not have been told (filemap_get_pages returns them
 * without its tracepoint): where the call began says which.
 */
static __always_inline u64 begin_of_read(struct task_struct *self, struct address_space *mapping, u64 index) {
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
        if (waited)
            first = begin_of_read(self, mapping, first);
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
        struct inode *_inode = (i);                                                                                    \
        struct task *_task = current_task();                                                                           \
        if (_task) {                                                                                                   \
            struct facts _facts = facts_known(_inode);                                                                 \
            refer(_task, &_facts, mapping, first, last, kind);                                                         \
        }                                                                                                              \
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

static __always_inline u64 pages_of(struct folio *folio) {
    unsigned long flags = 0;
    /* The flags are the first word of a folio in every kernel; their type is not. */
    bpf_probe_read_kernel(&flags, sizeof(flags), folio);
    if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
        return 1;
    struct folio___byte *old = (void *)folio;
    if (bpf_core_field_exists(old->_folio_order))
        return 1ULL << (BPF_CORE_READ(old, _folio_order) & 31);
    return 1ULL << (folio->_flags_1 & 31);
}

/* --- processes --- */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_forks, struct task_struct *parent, struct task_struct *child) {
    u32 tgid = child->tgid;
    u32 parent_tgid = parent->tgid;
    if (tgid == parent_tgid || !bpf_map_lookup_elem(&processes, &parent_tgid))
        return 0;
    struct process fresh = {};
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
    event->pid = tgid;
    event->parent = parent_tgid;
    event->pad = 0;
    event->start_time = child->start_time;
    event->start_boottime = child->start_boottime;
    BPF_CORE_READ_STR_INTO(&event->comm, child, comm);
    bpf_ringbuf_submit(event, wakeup());
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_executes, struct task_struct *task, int old_pid, struct linux_binprm *bprm) {
    u32 tgid = task->tgid;
    u32 old = old_pid;
    struct process *process = bpf_map_lookup_elem(&processes, &tgid);
    if (!process)
        return 0;
    /* The peak of the image that was replaced, often a copy of the parent's; exec keeps it (wait4 tells the larger). */
    process->replaced_maxrss = task->signal->maxrss;
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
    event->pid = tgid;
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
    struct fdtable *table = task->files->fdt;
    struct open_files all = {.open = BPF_CORE_READ(table, open_fds), .files = BPF_CORE_READ(table, fd)};
    u32 most = BPF_CORE_READ(table, max_fds);
    /* Since 5.17; a loop without it takes the verifier too long. */
    if (bpf_core_enum_value_exists(enum bpf_func_id___loop, BPF_FUNC_loop___known))
        bpf_loop(most < MAX_OPEN ? most : MAX_OPEN, look_at_open_file, &all, 0);
}

/*
 * The peak of the image that the process had last, in pages: what signal->maxrss says, unless that is still the
 * replaced image's. Then the mm knows, but for what each processor has not yet told (rss_stat's batches). Where neither
 * can be had, the replaced image's, as wait4 would say.
 */
static __always_inline u64 own_maxrss(struct task_struct *task, struct process *process) {
    u64 most = task->signal->maxrss;
    struct mm_struct *mm = task->mm;
    if (most > process->replaced_maxrss || !mm || !bpf_core_field_exists(mm->rss_stat[0].count))
        return most;
    /* 2 is swap. */
    s64 file = BPF_CORE_READ(mm, rss_stat[0].count);
    s64 heap = BPF_CORE_READ(mm, rss_stat[1].count);
    s64 shared = BPF_CORE_READ(mm, rss_stat[3].count);
    u64 rss = (file > 0 ? file : 0) + (heap > 0 ? heap : 0) + (shared > 0 ? shared : 0);
    u64 own = mm->hiwater_rss > rss ? mm->hiwater_rss : rss;
    return own && own < most ? own : most;
}

/*
 * Fired once per thread, after signal->live was counted down and signal->maxrss was raised to the mm's high-water mark
 * (do_exit does both first in every kernel; whether exit_mm comes before or after this tracepoint has changed, so the
 * mm is looked at only where it is still there).
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exits, struct task_struct *task) {
    u32 tgid = task->tgid;
    u32 tid = task->pid;
    struct process *process = bpf_map_lookup_elem(&processes, &tgid);
    if (!process)
        return 0;
    struct task *state = bpf_map_lookup_elem(&tasks, &tid);
    if (state) {
        tell_run(&state->run);
        tell_added(&state->added);
    }
    bpf_map_delete_elem(&tasks, &tid);

    u64 now = bpf_ktime_get_ns();
    u64 runtime = task->se.sum_exec_runtime;
    u64 life = now - task->start_time;
    __sync_fetch_and_add(&process->thread_ns, life);
    __sync_fetch_and_add(&process->utime_ns, task->utime);
    __sync_fetch_and_add(&process->stime_ns, task->stime);
    __sync_fetch_and_add(&process->runtime_ns, runtime);
    __sync_fetch_and_add(&process->minor_faults, task->min_flt);
    __sync_fetch_and_add(&process->major_faults, task->maj_flt);
    /* Only tasks born while delay accounting was on have it. */
    if (bpf_core_field_exists(task->delays)) {
        struct task_delay_info *delays = task->delays;
        if (delays && bpf_core_field_exists(delays->blkio_delay)) {
            u64 delay = delays->blkio_delay;
            /* The kernel sometimes ends a delay that it never began: it then counts from boot. */
            if (delay <= life)
                __sync_fetch_and_add(&process->delay_ns, delay);
            process->delay_known = 1;
        }
    }

    struct signal_struct *signal = task->signal;
    if (signal->live.counter != 0)
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
    struct task_struct *leader = task->group_leader;
    event->type = EVENT_EXIT;
    event->pid = tgid;
    event->parent = task->real_parent->tgid;
    event->exit_code = signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : leader->exit_code;
    event->time = now;
    event->start_time = leader->start_time;
    event->start_boottime = leader->start_boottime;
    event->maxrss_pages = own_maxrss(task, process);
    event->utime_ns = signal->utime + task->utime;
    event->stime_ns = signal->stime + task->stime;
    event->runtime_ns = signal->sum_sched_runtime + runtime;
    event->minor_faults = signal->min_flt + task->min_flt;
    event->major_faults = signal->maj_flt + task->maj_flt;
    BPF_CORE_READ_STR_INTO(&event->comm, leader, comm);
    bpf_ringbuf_submit(event, wakeup());
    return 0;
}

/* --- the page cache --- */

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

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(page_added, struct folio *folio) {
    struct task *task = current_task();
    if (!task)
        return 0;
    struct inode *inode = folio->mapping->host;
    struct added *added = &task->added;
    u64 number = inode->i_ino;
    u32 device = inode->i_sb->s_dev;
    u32 generation = inode->i_generation;
    u64 first = folio->index;
    u64 pages = pages_of(folio);
    if (added->pages && added->pages < MAX_ADDED_RUN && added->inode == number && added->device == device &&
        added->generation == generation && added->first + added->pages == first) {
        added->pages += pages;
        return 0;
    }
    tell_added(added);
    added->inode = number;
    added->device = device;
    added->generation = generation;
    added->first = first;
    added->pages = pages;
    return 0;
}

static __always_inline void written(struct inode *inode, s64 position, s64 length) {
    if (length > 0 && position >= 0)
        refer_known(inode, 0, position >> settings.page_shift, (position + length - 1) >> settings.page_shift,
                    KIND_WRITE);
}

/* Page by page as they are copied, so that a short write is not taken for a whole one. */
SEC("tp_btf/ext4_da_write_end")
int BPF_PROG(ext4_writes_delayed, struct inode *inode, s64 position, unsigned int length, unsigned int copied) {
    written(inode, position, copied);
    return 0;
}

SEC("tp_btf/ext4_write_end")
int BPF_PROG(ext4_writes, struct inode *inode, s64 position, unsigned int length, unsigned int copied) {
    written(inode, position, copied);
    return 0;
}

SEC("tp_btf/xfs_file_buffered_write")
int BPF_PROG(xfs_writes, struct kiocb *call, struct iov_iter *data) {
    written(call->ki_filp->f_mapping->host, call->ki_pos, data->count);
    return 0;
}

/*
 * A clean page became dirty: a store through a mapping, or, on file systems without a tracepoint of their own, a
 * write(). Further writes to a page that is dirty already are not seen there; writeback cleans it within half a minute.
 */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(page_dirtied, struct folio *folio, struct address_space *mapping) {
    if (!mapping)
        return 0;
    struct task *task = current_task();
    if (!task)
        return 0;
    struct inode *inode = mapping->host;
    u64 magic = inode->i_sb->s_magic;
    if (magic == MAGIC_BDEV)
        return 0;
    u64 first = folio->index;
    u64 last = first + pages_of(folio) - 1;
    if (task->file.inode == inode->i_ino && task->file.device == inode->i_sb->s_dev && first <= task->last &&
        last >= task->first) {
        bool told = (magic == MAGIC_EXT && settings.ext4_writes) || (magic == MAGIC_XFS && settings.xfs_writes);
        if (task->kind == KIND_FAULT || (task->kind == KIND_WRITE && told))
            return 0;
    }
    struct facts facts = facts_known(inode);
    refer(task, &facts, 0, first, last, KIND_WRITE);
    return 0;
}

SEC("tp_btf/iomap_dio_rw_begin")
int BPF_PROG(direct_begins, struct kiocb *call, struct iov_iter *data) {
    if (in_job())
        hide(CLASS_DIRECT, data->count, 1);
    return 0;
}

/* --- before 6.12: the page cache's part through the system calls' results --- */

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
