// SPDX-License-Identifier: (MIT OR Apache-2.0)
/*
 * Times the page faults of a job. A fault begins at the tracepoint in its exception entry and ends with the software
 * perf event that the kernel raises once a page is mapped: one for each fault however often it was tried, and none for
 * one that ends in a signal. All that is known of a fault in between is in its thread's storage, which also says that
 * the thread is followed: threads and processes that it starts inherit it.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "faults.h"
#include "numbers.bpf.h"

/* Of an x86 page fault's error code. */
#define FAULT_PRESENT 1
#define FAULT_WRITE 2

#define GFP_MOVABLE 8
#define VM_SHARED 8
#define VM_HUGETLB 0x400000
#define MAGIC_TMPFS 0x01021994
#define MM_SWAPENTS 2
#define REGION_SHIFT 21
#define MAP_LOCKED 0x2000
#define MAP_POPULATE 0x8000
#define MLOCK_ONFAULT 1
#define PAGE_SHIFT 12
/* No fault that waits for a collapse is as short. */
#define COLLAPSE_LEAST_NS 8000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct vm_operations_struct;

struct vm_area_struct {
    unsigned long vm_start;
    unsigned long vm_end;
    unsigned long vm_flags;
    const struct vm_operations_struct *vm_ops;
    struct file *vm_file;
};

struct userfaultfd_ctx;

struct vm_userfaultfd_ctx {
    struct userfaultfd_ctx *ctx;
};

/* Without userfaultfd in the kernel there is nothing in it. */
struct vm_area_struct___userfault {
    struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
};

struct task_struct___storage {
    void *bpf_storage;
};

/* Since 6.4: changes whenever the address space does. A seqcount since 6.13. */
struct mm_struct___number {
    int mm_lock_seq;
};

struct seqcount {
    unsigned int sequence;
};

struct mm_struct___seqcount {
    struct seqcount mm_lock_seq;
};

#pragma clang attribute pop

struct page;

struct bpf_perf_event_data {
#if defined(__TARGET_ARCH_x86)
    u64 regs[21];
#else
    u64 regs[34];
#endif
    u64 sample_period;
    u64 addr;
};

enum class {
    CLASS_UNKNOWN,
    CLASS_ANONYMOUS,
    CLASS_FILE,
    CLASS_SHARED,
    CLASS_HUGETLB,
    CLASS_OTHER,
};

/* A mapping that a thread has faulted in, good for as long as the address space is what it was. */
struct mapping {
    u64 mm;
    u64 start;
    u64 end;
    u32 seq;
    u8 class;
    u8 is_private;
    u8 is_userfault; /* another thread or process may serve it */
};

/* A system call on memory that a thread is in. */
struct memory_call {
    u64 start_ns; /* 0: it is in none */
    u64 since_ns[CAUSES];
    u64 parts_ns[CAUSES];
    u64 populated;
    u64 allocated;
    u32 kind;
};

struct thread {
    u64 start_ns; /* of the fault it is in; 0: it is in none */
    u64 since_ns[CAUSES];
    u64 parts_ns[CAUSES];
    u32 error;
    u16 inner;
    u8 order;
    u8 swapped;
    u8 in_kernel;
    u8 causes;
    u8 slept; /* let its processor go, and not for memory to be reclaimed or compacted */
    struct mapping mapping;
    struct memory_call call;
};

struct collapse {
    u64 begin_ns;
    u64 end_ns; /* 0: it goes on */
    u64 mm;     /* known at its end */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct settings);
} settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, KINDS);
    __type(key, u32);
    __type(value, struct figures);
} figures SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, KINDS *HISTOGRAMS);
    __type(key, u32);
    __type(value, struct histogram);
} histograms SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, CALLS);
    __type(key, u32);
    __type(value, struct call_figures);
} calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, MOMENTS);
    __type(key, u32);
    __type(value, struct moment);
} moments SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct slowest);
} slowest SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, MISSED);
    __type(key, u32);
    __type(value, u64);
} missed SEC(".maps");

/* By the number of the region. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, u64);
    __type(value, struct collapse);
} collapses SEC(".maps");

/* The region that a thread collapses. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, u32);
    __type(value, u64);
} collapsing SEC(".maps");

static __always_inline void miss(u32 what) {
    u64 *count = bpf_map_lookup_elem(&missed, &what);
    if (count)
        *count += 1;
}

/* The thread that runs, if it is followed. */
static __always_inline struct thread *current_thread(void) {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    /* Nearly all others have none at all, which is told sooner so. */
    if (!((struct task_struct___storage *)task)->bpf_storage)
        return 0;
    return bpf_task_storage_get(&threads, task, 0, 0);
}

/* The thread that runs, if it is followed and in a fault. */
static __always_inline struct thread *faulting_thread(void) {
    struct thread *thread = current_thread();
    return thread && thread->start_ns ? thread : 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(thread_starts, struct task_struct *parent, struct task_struct *child) {
    if (bpf_task_storage_get(&threads, parent, 0, 0) &&
        !bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
        miss(MISSED_THREADS);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(thread_executes, struct task_struct *task, int old_pid, struct linux_binprm *bprm) {
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
    if (thread) {
        thread->mapping.mm = 0;
        thread->call.start_ns = 0;
    }
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exits, struct task_struct *task) {
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
    if (thread && thread->start_ns) {
        thread->start_ns = 0;
        miss(MISSED_UNFINISHED);
    }
    return 0;
}

static __always_inline int begin(unsigned long address, u32 error, bool in_kernel) {
    struct thread *thread = current_thread();
    /* The kernel's own addresses have the highest bit. */
    if (!thread || (s64)address < 0)
        return 0;
    if (thread->start_ns)
        miss(MISSED_UNFINISHED);
    __builtin_memset(thread->since_ns, 0, sizeof(thread->since_ns));
    __builtin_memset(thread->parts_ns, 0, sizeof(thread->parts_ns));
    thread->error = error;
    thread->inner = 0;
    thread->order = ORDER_NONE;
    thread->swapped = 0;
    thread->in_kernel = in_kernel;
    thread->causes = 0;
    thread->slept = 0;
    thread->start_ns = bpf_ktime_get_ns();
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(user_faults, unsigned long address, struct pt_regs *regs, unsigned long error) {
    return begin(address, error, 0);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(kernel_faults, unsigned long address, struct pt_regs *regs, unsigned long error) {
    return begin(address, error, 1);
}

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(page_allocated, struct page *page, unsigned int order, u32 flags) {
    struct thread *thread = current_thread();
    if (!thread)
        return 0;
    if (!thread->start_ns) {
        struct memory_call *call = &thread->call;
        if (call->start_ns && page && (flags & GFP_MOVABLE) && !call->since_ns[CAUSE_RECLAIM] && order < 32)
            call->allocated += 1ull << order;
        return 0;
    }
    thread->inner++;
    /* Page tables do not move; what reclaim allocates to write pages out is not the fault's. */
    if (page && (flags & GFP_MOVABLE) && !thread->since_ns[CAUSE_RECLAIM] && order < ORDER_NONE &&
        (thread->order == ORDER_NONE || order > thread->order))
        thread->order = order;
    return 0;
}

/* Before 6.2 only told of every 64th change. */
SEC("tp_btf/rss_stat")
int BPF_PROG(rss_changes, struct mm_struct *mm, int member) {
    struct thread *thread = faulting_thread();
    if (!thread)
        return 0;
    thread->inner++;
    /* Reclaim may swap out pages of the same process. */
    if (member == MM_SWAPENTS && !thread->since_ns[CAUSE_RECLAIM])
        thread->swapped = 1;
    return 0;
}

/* A fault's part, or if the thread is in none, that of its call. */
static __always_inline int part_begins(struct thread *thread, u32 cause) {
    if (!thread)
        return 0;
    if (thread->start_ns) {
        thread->causes |= 1 << cause;
        thread->since_ns[cause] = bpf_ktime_get_ns();
    } else if (thread->call.start_ns) {
        thread->call.since_ns[cause] = bpf_ktime_get_ns();
    }
    return 0;
}

static __always_inline int part_ends(struct thread *thread, u32 cause) {
    if (!thread)
        return 0;
    if (thread->start_ns && thread->since_ns[cause]) {
        thread->parts_ns[cause] += bpf_ktime_get_ns() - thread->since_ns[cause];
        thread->since_ns[cause] = 0;
    } else if (thread->call.start_ns && thread->call.since_ns[cause]) {
        thread->call.parts_ns[cause] += bpf_ktime_get_ns() - thread->call.since_ns[cause];
        thread->call.since_ns[cause] = 0;
    }
    return 0;
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(compaction_begins) {
    return part_begins(current_thread(), CAUSE_COMPACTION);
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(compaction_ends) {
    return part_ends(current_thread(), CAUSE_COMPACTION);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(reclaim_begins) {
    return part_begins(current_thread(), CAUSE_RECLAIM);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(reclaim_ends) {
    return part_ends(current_thread(), CAUSE_RECLAIM);
}

/* Under a cgroup's limit. */
SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(group_reclaim_begins) {
    return part_begins(current_thread(), CAUSE_RECLAIM);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(group_reclaim_ends) {
    return part_ends(current_thread(), CAUSE_RECLAIM);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(task_switches, bool preempt, struct task_struct *prev, struct task_struct *next) {
    struct thread *thread = bpf_task_storage_get(&threads, prev, 0, 0);
    part_begins(thread, CAUSE_OFF_CPU);
    if (thread && !preempt && !thread->since_ns[CAUSE_RECLAIM] && !thread->since_ns[CAUSE_COMPACTION])
        thread->slept = 1;
    thread = bpf_task_storage_get(&threads, next, 0, 0);
    part_ends(thread, CAUSE_OFF_CPU);
    return 0;
}

/*
 * Neither of the two tells the address: the first has the last page that was isolated, whose index is its address's
 * unless the mapping was moved, and the second the address space. (Before 6.8 it is a page, which begins alike.)
 */
SEC("tp_btf/mm_collapse_huge_page_isolate")
int BPF_PROG(collapse_begins, struct folio *folio) {
    if (!folio)
        return 0;
    u64 region = BPF_CORE_READ(folio, index) >> (REGION_SHIFT - 12);
    u32 tid = bpf_get_current_pid_tgid();
    struct collapse collapse = {.begin_ns = bpf_ktime_get_ns()};
    bpf_map_update_elem(&collapses, &region, &collapse, BPF_ANY);
    bpf_map_update_elem(&collapsing, &tid, &region, BPF_ANY);
    return 0;
}

SEC("tp_btf/mm_collapse_huge_page")
int BPF_PROG(collapse_ends, struct mm_struct *mm) {
    u32 tid = bpf_get_current_pid_tgid();
    u64 *region = bpf_map_lookup_elem(&collapsing, &tid);
    struct collapse *collapse = region ? bpf_map_lookup_elem(&collapses, region) : 0;
    if (collapse) {
        collapse->mm = (u64)mm;
        collapse->end_ns = bpf_ktime_get_ns();
    }
    bpf_map_delete_elem(&collapsing, &tid);
    return 0;
}

static __always_inline bool was_collapsed(u64 address, u64 mm, u64 start) {
    u64 region = address >> REGION_SHIFT;
    struct collapse *collapse = bpf_map_lookup_elem(&collapses, &region);
    return collapse && (!collapse->end_ns || (collapse->end_ns > start && collapse->mm == mm));
}

static __always_inline u8 class_of(struct vm_area_struct *vma) {
    if (vma->vm_flags & VM_HUGETLB)
        return CLASS_HUGETLB;
    if (!vma->vm_ops)
        return CLASS_ANONYMOUS;
    struct inode *inode = BPF_CORE_READ(vma, vm_file, f_mapping, host);
    u32 type = BPF_CORE_READ(inode, i_mode) & S_IFMT;
    if (inode && BPF_CORE_READ(inode, i_sb, s_magic) == MAGIC_TMPFS)
        return CLASS_SHARED;
    return inode && (type == S_IFREG || type == S_IFBLK) ? CLASS_FILE : CLASS_OTHER;
}

static long remember_mapping(struct task_struct *task, struct vm_area_struct *vma, struct mapping *mapping) {
    mapping->start = vma->vm_start;
    mapping->end = vma->vm_end;
    mapping->is_private = !(vma->vm_flags & VM_SHARED);
    mapping->class = class_of(vma);
    struct vm_area_struct___userfault *served = (void *)vma;
    if (bpf_core_field_exists(served->vm_userfaultfd_ctx.ctx))
        mapping->is_userfault = served->vm_userfaultfd_ctx.ctx != 0;
    return 0;
}

/* Looked for only after the fault's end was timed; CLASS_UNKNOWN if somebody changes the address space now. */
static __always_inline struct mapping mapping_at(struct thread *thread, struct task_struct *task, u64 address) {
    struct mm_struct *mm = task->mm;
    bool has_seq = 1;
    struct mapping found = {.mm = (u64)mm};
    if (bpf_core_field_exists(struct mm_struct___seqcount, mm_lock_seq.sequence))
        found.seq = BPF_CORE_READ((struct mm_struct___seqcount *)mm, mm_lock_seq.sequence);
    else if (bpf_core_field_exists(struct mm_struct___number, mm_lock_seq))
        found.seq = BPF_CORE_READ((struct mm_struct___number *)mm, mm_lock_seq);
    else
        has_seq = 0;
    struct mapping *last = &thread->mapping;
    if (has_seq && last->mm == found.mm && last->seq == found.seq && address >= last->start && address < last->end)
        return *last;
    bpf_find_vma(task, address, remember_mapping, &found, 0);
    if (found.class != CLASS_UNKNOWN)
        *last = found;
    return found;
}

static __always_inline u32 kind_of(struct thread *thread, struct mapping *mapping, u32 pmd_order) {
    bool writes = thread->error & FAULT_WRITE, present = thread->error & FAULT_PRESENT;
    /*
     * It slept: a handler has placed the page, or lifted its protection. Anonymous memory is allocated before the
     * handler is asked, and given back.
     */
    if (mapping->is_userfault && thread->slept && !thread->swapped &&
        (mapping->class == CLASS_ANONYMOUS || thread->order == ORDER_NONE))
        return KIND_USERFAULT;
    switch (mapping->class) {
    case CLASS_HUGETLB:
        return KIND_HUGETLB;
    case CLASS_FILE:
        return writes && mapping->is_private ? KIND_COPY : KIND_FILE;
    case CLASS_SHARED:
        return writes && mapping->is_private ? KIND_COPY : KIND_SHARED;
    case CLASS_OTHER:
        return KIND_OTHER;
    case CLASS_ANONYMOUS:
        if (thread->swapped)
            return KIND_SWAP;
        if (writes && present)
            return KIND_COPY;
        if (thread->order == ORDER_NONE)
            return writes || present ? KIND_OTHER : KIND_ZERO;
    }
    if (thread->order == ORDER_NONE)
        return KIND_OTHER;
    return thread->order == 0 ? KIND_BASE : thread->order >= pmd_order ? KIND_HUGE : KIND_LARGE;
}

static __always_inline u32 log2_of(u64 value) {
    u32 log2 = 0;
    for (u32 step = 32; step; step /= 2) {
        if (value >> step) {
            value >>= step;
            log2 += step;
        }
    }
    return log2;
}

static __always_inline u32 bucket_of(u64 ns) {
    if (ns < SUB_BUCKETS)
        return ns;
    u32 log2 = log2_of(ns);
    if (log2 > LARGEST_LOG2)
        return BUCKETS - 1;
    return (log2 - SUB_BUCKETS_LOG2 + 1) * SUB_BUCKETS + (ns >> (log2 - SUB_BUCKETS_LOG2)) % SUB_BUCKETS;
}

static __always_inline void count_in(u32 kind, u32 which, u64 ns) {
    u32 key = kind * HISTOGRAMS + which;
    struct histogram *histogram = bpf_map_lookup_elem(&histograms, &key);
    u32 bucket = bucket_of(ns);
    if (histogram && bucket < BUCKETS)
        histogram->counts[bucket]++;
}

static __always_inline void count_moment(u64 now, u64 latency) {
    u64 number = now >> MOMENT_LOG2;
    u32 key = number % MOMENTS;
    struct moment *moment = bpf_map_lookup_elem(&moments, &key);
    if (!moment)
        return;
    if (moment->number != number)
        *moment = (struct moment){.number = number};
    moment->count++;
    moment->sum_ns += latency;
    if (latency > moment->max_ns)
        moment->max_ns = latency;
}

/* Keeps it if it is among the slowest of this processor. */
static __noinline int keep_slow(struct slow_fault *fault) {
    u32 zero = 0;
    struct slowest *all = bpf_map_lookup_elem(&slowest, &zero);
    if (!all || !fault)
        return 0;
    u32 at = all->used < SLOWEST ? all->used++ : all->least;
    if (at >= SLOWEST)
        return 0;
    all->faults[at] = *fault;
    if (all->used < SLOWEST)
        return 0;
    u64 floor = -1;
    for (u32 i = 0; i < SLOWEST; i++) {
        if (all->faults[i].latency_ns < floor) {
            floor = all->faults[i].latency_ns;
            all->least = i;
        }
    }
    all->floor_ns = floor;
    return 0;
}

static __always_inline int end(struct bpf_perf_event_data *ctx, bool major) {
    u64 now = bpf_ktime_get_ns();
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    struct thread *thread = current_thread();
    if (!thread)
        return 0;
    u64 start = thread->start_ns;
    if (!start) {
        miss(MISSED_UNTIMED);
        return 0;
    }
    thread->start_ns = 0;
    u32 zero = 0;
    struct settings *set = bpf_map_lookup_elem(&settings, &zero);
    if (!set)
        return 0;
    s64 own = set->fixed_ns + (s64)(set->inner_ns * thread->inner);
    s64 rest = (s64)(now - start) - own;
    u64 latency = rest > 0 ? rest : 1;

    struct mapping mapping = mapping_at(thread, task, ctx->addr);
    u32 kind = kind_of(thread, &mapping, set->pmd_order);
    u32 causes = thread->causes;
    if (latency > COLLAPSE_LEAST_NS && was_collapsed(ctx->addr, mapping.mm, start)) {
        causes |= 1 << CAUSE_COLLAPSE;
        thread->parts_ns[CAUSE_COLLAPSE] = thread->parts_ns[CAUSE_OFF_CPU];
    }

    struct figures *of_kind = bpf_map_lookup_elem(&figures, &kind);
    if (!of_kind)
        return 0;
    of_kind->count++;
    of_kind->sum_ns += latency;
    of_kind->inner += thread->inner;
    of_kind->kernel_count += thread->in_kernel;
    of_kind->major_count += major;
    if (latency > of_kind->max_ns)
        of_kind->max_ns = latency;
    u32 order = thread->order;
    if (order < ORDERS) {
        of_kind->orders[order].count++;
        of_kind->orders[order].sum_ns += latency;
        if (latency > of_kind->orders[order].max_ns)
            of_kind->orders[order].max_ns = latency;
    }
    u64 on_cpu = latency;
    if (causes) {
        for (u32 cause = 0; cause < CAUSES; cause++) {
            if (!(causes & 1 << cause))
                continue;
            of_kind->causes[cause].count++;
            of_kind->causes[cause].sum_ns += latency;
            of_kind->causes[cause].part_ns += thread->parts_ns[cause];
            if (latency > SLOW_NS)
                of_kind->slow_causes[cause]++;
        }
        if (causes & 1 << CAUSE_OFF_CPU) {
            u64 off = thread->parts_ns[CAUSE_OFF_CPU];
            on_cpu = latency > off ? latency - off : 1;
        }
    }
    if (on_cpu > of_kind->max_on_cpu_ns)
        of_kind->max_on_cpu_ns = on_cpu;
    if (causes & 1 << CAUSE_OFF_CPU) {
        count_in(kind, OF_DISTURBED, latency);
        count_in(kind, OF_DISTURBED_ON_CPU, on_cpu);
    } else {
        count_in(kind, OF_UNDISTURBED, latency);
    }
    if (latency > SLOW_NS) {
        of_kind->slow_count++;
        of_kind->slow_sum_ns += latency;
    }
    count_moment(now, latency);
    struct slowest *all = bpf_map_lookup_elem(&slowest, &zero);
    if (all && latency > all->floor_ns) {
        struct slow_fault fault = {
            .end_ns = now,
            .latency_ns = latency,
            .address = ctx->addr,
            .pid = number_in(task->group_leader, set->pid_namespace),
            .kind = kind,
            .order = order,
            .causes = causes,
            .in_kernel = thread->in_kernel,
        };
        __builtin_memcpy(fault.parts_ns, thread->parts_ns, sizeof(fault.parts_ns));
        keep_slow(&fault);
    }
    return 0;
}

SEC("perf_event")
int minor_fault_ends(struct bpf_perf_event_data *ctx) {
    return end(ctx, 0);
}

SEC("perf_event")
int major_fault_ends(struct bpf_perf_event_data *ctx) {
    return end(ctx, 1);
}

#if defined(__TARGET_ARCH_x86)

static __always_inline u32 call_of_advice(u64 advice) {
    switch (advice) {
    case 22: /* MADV_POPULATE_READ */
    case 23: /* MADV_POPULATE_WRITE */
        return CALL_POPULATE;
    case 25: /* MADV_COLLAPSE */
        return CALL_COLLAPSE;
    case 4:  /* MADV_DONTNEED */
    case 8:  /* MADV_FREE */
    case 9:  /* MADV_REMOVE */
    case 20: /* MADV_COLD */
    case 21: /* MADV_PAGEOUT */
    case 24: /* MADV_DONTNEED_LOCKED */
        return CALL_RELEASE;
    }
    return CALL_ADVISE;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_begins, struct pt_regs *regs, long number) {
    u32 kind = CALL_NONE;
    u64 populated = 0;
    /* First of all: every system call of the machine comes here. */
    switch (number) {
    case NR_MMAP:
        kind = CALL_MMAP;
        populated = regs->r10 & (MAP_POPULATE | MAP_LOCKED) ? regs->si : 0;
        break;
    case NR_MUNMAP:
        kind = CALL_MUNMAP;
        break;
    case NR_MREMAP:
        kind = CALL_MREMAP;
        break;
    case NR_MPROTECT:
        kind = CALL_MPROTECT;
        break;
    case NR_BRK:
        kind = CALL_BRK;
        break;
    case NR_MLOCK:
        kind = CALL_MLOCK;
        populated = regs->si;
        break;
    case NR_MLOCK2:
        kind = CALL_MLOCK;
        populated = regs->dx & MLOCK_ONFAULT ? 0 : regs->si;
        break;
    case NR_MLOCKALL:
        kind = CALL_MLOCK;
        break;
    case NR_MADVISE:
        kind = call_of_advice(regs->dx);
        populated = kind == CALL_POPULATE ? regs->si : 0;
        break;
    case NR_PROCESS_MADVISE:
        kind = CALL_PROCESS_ADVISE;
        break;
    }
    if (kind == CALL_NONE)
        return 0;
    struct thread *thread = current_thread();
    struct task_struct *self = bpf_get_current_task_btf();
    /* Numbers of 32-bit programs are others. */
    if (!thread || self->thread_info.status & TS_COMPAT)
        return 0;
    thread->call = (struct memory_call){.kind = kind, .populated = populated, .start_ns = bpf_ktime_get_ns()};
    return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs *regs, long result) {
    switch (regs->orig_ax) {
    case NR_MMAP:
    case NR_MUNMAP:
    case NR_MREMAP:
    case NR_MPROTECT:
    case NR_BRK:
    case NR_MLOCK:
    case NR_MLOCK2:
    case NR_MLOCKALL:
    case NR_MADVISE:
    case NR_PROCESS_MADVISE:
        break;
    default:
        return 0;
    }
    struct thread *thread = current_thread();
    if (!thread || !thread->call.start_ns)
        return 0;
    struct memory_call *call = &thread->call;
    u64 took = bpf_ktime_get_ns() - call->start_ns;
    call->start_ns = 0;
    u32 kind = call->kind;
    struct call_figures *all = bpf_map_lookup_elem(&calls, &kind);
    if (!all)
        return 0;
    all->count++;
    all->sum_ns += took;
    if (took > all->max_ns)
        all->max_ns = took;
    all->allocated += call->allocated;
    /* After mlockall, memory is populated without being asked for in the call. */
    bool may_populate = kind == CALL_MMAP || kind == CALL_BRK || kind == CALL_MREMAP || kind == CALL_MLOCK;
    u64 populated = call->populated ? call->populated : may_populate ? call->allocated << PAGE_SHIFT : 0;
    if (populated && (result >= 0 || result < -4095)) {
        all->populated += populated;
        all->populating_count++;
        all->populating_ns += took;
    }
    for (u32 cause = 0; cause < CAUSES; cause++)
        all->parts_ns[cause] += call->parts_ns[cause];
    return 0;
}

#endif

/* Much of what it calls is GPL only, as is the reading of kernel memory. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
