// SPDX-License-Identifier: (MIT OR Apache-2.0)
/*
 * Reads the Accessed bits of a process out of its page tables, which the kernel maps like all memory. Nothing is locked
 * and nothing is written: a table that is freed while it is read yields nonsense for one look, never a fault. x86-64.
 *
 * An iterator finds the task once; the walks are programs that a system call runs, which costs a tenth of an iterator.
 * A task that has ended is told by its start: what is in its place, if anything is, has another.
 *
 * Of a page that comes back from swap, and goes again before the next look, the tables say nothing: the exception
 * tracepoints tell of it, by its address.
 *
 * A guest of KVM goes by page tables of its own: what it accesses DAMON knows (mm/damon/vaddr.c), and tells by a
 * tracepoint.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "numbers.bpf.h"
#include "pages.h"

/* Bits of an entry: Intel SDM volume 3, 5.5; PROTNONE is Linux's, of a page that is there but may not be touched. */
#define PRESENT 1ull
#define ACCESSED (1ull << 5)
#define LEAF (1ull << 7)
#define PROTNONE (1ull << 8)
#define ADDRESS 0x000ffffffffff000ull

/* Of a page fault's error code. */
#define FAULT_PRESENT 1

#define REGION (1ull << 21)
#define GIB (1ull << 30)
#define ROOT (1ull << 39)

/* The kernel maps memory at a random multiple of this (arch/x86/mm/kaslr.c). */
#define BASE_STEP GIB
#define MOST_BASES 65536
#define MOST_STEPS (1 << 20)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct___tables {
    void *pgd;
};

struct bpf_iter__task {
    struct task_struct *task;
};

/* As Linux 5.15 to 6.18 have it. */
struct trace_event_raw_damon_aggregated {
    unsigned long target_id;
    unsigned long start;
    unsigned long end;
    unsigned int nr_accesses;
};

#pragma clang attribute pop

/* Mapped by the reader. */
struct window window = {};

/* Where a walk is: the table of the 1 GiB that was looked at last. */
struct walk {
    u64 root;
    u64 gib;
    u64 regions;
    bool upper; /* whether the table above is there */
};

static __always_inline u64 entry(u64 table, u64 address, u32 shift) {
    u64 value = 0;
    if (table)
        bpf_probe_read_kernel(&value, sizeof(value), (void *)(table + (address >> shift) % 512 * 8));
    return value;
}

/* The table that an entry points to; 0: none. */
static __always_inline u64 table(u64 entry) {
    u64 at = entry & ADDRESS;
    if (!(entry & PRESENT) || (entry & LEAF) || at >= window.memory)
        return 0;
    return window.base + at;
}

static __always_inline u64 region_entry(struct walk *walk, u64 address) {
    if (walk->gib != address / GIB) {
        walk->gib = address / GIB;
        u64 top = walk->root;
        if (window.levels == 5)
            top = table(entry(top, address, 48));
        u64 upper = table(entry(top, address, 39));
        walk->upper = upper != 0;
        walk->regions = table(entry(upper, address, 30));
    }
    return entry(walk->regions, address, 21);
}

static __always_inline u8 state_of(u64 entry, u8 huge) {
    if (entry & (PRESENT | PROTNONE))
        return huge | STATE_MAPPED | (entry & ACCESSED ? STATE_ACCESSED : 0);
    return entry ? huge | STATE_AWAY : 0;
}

/* Once more at the end, the kernel runs an iterator's program without a task. */
SEC("iter/task")
int find_task(struct bpf_iter__task *ctx) {
    struct task_struct *task = ctx->task;
    if (task) {
        window.task = (u64)task;
        window.start = BPF_CORE_READ(task, start_boottime);
    }
    return 0;
}

static __always_inline bool begin(struct walk *walk) {
    struct task_struct *task = (struct task_struct *)window.task;
    window.space = 0;
    if (!window.start || BPF_CORE_READ(task, start_boottime) != window.start)
        return 0;
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    if (!mm)
        return 0;
    walk->root = (u64)BPF_CORE_READ((struct mm_struct___tables *)mm, pgd);
    walk->gib = -1;
    window.space = (u64)mm;
    return walk->root != 0;
}

static long look(u32 i, struct walk *walk) {
    if (i >= MOST_ADDRESSES)
        return 1;
    u64 address = window.addresses[i];
    u64 region = region_entry(walk, address);
    if (!region)
        window.states[i] = 0;
    else if (region & LEAF || !(region & PRESENT))
        window.states[i] = state_of(region, STATE_HUGE);
    else
        window.states[i] = state_of(entry(table(region), address, 12), 0);
    return 0;
}

/* Looks at `count` addresses, best in rising order. */
SEC("syscall")
int look_at_pages(void *ctx) {
    struct walk walk = {};
    if (begin(&walk))
        bpf_loop(window.count, look, &walk, 0);
    return 0;
}

static long list(u32 i, struct walk *walk) {
    u32 at = window.count;
    if (at >= MOST_ADDRESSES || window.cursor >= window.end)
        return 1;
    u64 region = region_entry(walk, window.cursor);
    if (!walk->regions) {
        u64 absent = walk->upper ? GIB : ROOT;
        window.cursor = (window.cursor / absent + 1) * absent;
        return 0;
    }
    if (region) {
        window.addresses[at] = window.cursor;
        window.states[at] =
            region & LEAF || !(region & PRESENT) ? state_of(region, STATE_HUGE) : STATE_MAPPED | STATE_ACCESSED;
        window.count = at + 1;
    }
    window.cursor += REGION;
    return 0;
}

/* Lists the regions of 2 MiB that have anything, from `cursor` to `end`. */
SEC("syscall")
int list_regions(void *ctx) {
    struct walk walk = {};
    if (begin(&walk))
        bpf_loop(MOST_STEPS, list, &walk, 0);
    return 0;
}

/* Accessed entries of one region; a huge page counts as its pages. */
static long add_accessed(u32 i, struct walk *walk) {
    if (window.cursor >= window.end)
        return 1;
    u64 region = region_entry(walk, window.cursor);
    if (!walk->regions) {
        u64 absent = walk->upper ? GIB : ROOT;
        window.cursor = (window.cursor / absent + 1) * absent;
        return 0;
    }
    window.cursor += REGION;
    if (region & LEAF && region & ACCESSED)
        window.accessed += ENTRIES;
    u64 at = table(region);
    if (!at || bpf_probe_read_kernel(window.table, sizeof(window.table), (void *)at))
        return 0;
    /* Kept from being folded into the address of the window, which is too far away for the offset of one instruction.
     */
    u64 *entries = window.table;
    asm volatile("" : "+r"(entries));
    u64 accessed = 0;
#pragma unroll 16
    for (u32 n = 0; n < ENTRIES; n++)
        accessed += entries[n] & ACCESSED;
    window.accessed += accessed / ACCESSED;
    return 0;
}

/* Counts all that was accessed from `cursor` to `end`. */
SEC("syscall")
int count_accessed(void *ctx) {
    struct walk walk = {};
    if (begin(&walk))
        bpf_loop(MOST_STEPS, add_accessed, &walk, 0);
    return 0;
}

/* A wrong base ends in a fault, which reads as 0, or at another frame. */
static long try_base(u32 i, struct walk *walk) {
    u64 first = walk->root / BASE_STEP * BASE_STEP;
    window.base = first - i * BASE_STEP;
    if (walk->root - window.base >= window.memory) {
        window.base = 0;
        return 1;
    }
    walk->gib = -1;
    u64 region = region_entry(walk, window.cursor);
    u64 leaf = entry(table(region), window.cursor, 12);
    return (leaf & PRESENT) && (leaf & ADDRESS) >> 12 == window.frame;
}

/* Finds where the kernel maps all memory: there the walk to a page whose frame is known ends at that frame. */
SEC("syscall")
int find_base(void *ctx) {
    struct walk walk = {};
    if (begin(&walk))
        bpf_loop(MOST_BASES, try_base, &walk, 0);
    return 0;
}

/* By the number of the process, as the reader knows it. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, MOST_FOLLOWED);
    __type(key, u32);
    __type(value, u8);
} followed SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, RETURNED_BYTES);
} returned SEC(".maps");

static __always_inline u64 mix(u64 number) {
    u64 z = number + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Whether the page stands for its 2^level neighbours: as track::pages::choice chooses, from the lowest bit up. */
static __always_inline bool is_chosen(u64 page, u64 level) {
    for (u64 below = 0; below < level && below < 64; below++)
        if ((mix(page >> (below + 1) ^ below << 58) ^ page >> below) & 1)
            return 0;
    return 1;
}

/* Every fault of the machine comes here: most are dismissed by a bit or two of their address. */
static __always_inline int faulted(u64 address, u64 error) {
    if (error & FAULT_PRESENT || !is_chosen(address >> 12, window.level))
        return 0;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    u32 pid = number_in(task->group_leader, window.pid_namespace);
    if (!bpf_map_lookup_elem(&followed, &pid))
        return 0;
    struct walk walk = {.root = (u64)((struct mm_struct___tables *)task->mm)->pgd, .gib = -1};
    u64 region = region_entry(&walk, address);
    u64 page = region & LEAF ? 0 : entry(table(region), address, 12);
    /* What was never there is touched for the first time. */
    if (state_of(page, 0) != STATE_AWAY)
        return 0;
    struct returned *event = bpf_ringbuf_reserve(&returned, sizeof(*event), 0);
    if (!event) {
        __sync_fetch_and_add(&window.lost, 1);
        return 0;
    }
    *event = (struct returned){.address = address >> 12 << 12, .pid = pid};
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(user_faults, unsigned long address, struct pt_regs *regs, unsigned long error) {
    return faulted(address, error);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(kernel_faults, unsigned long address, struct pt_regs *regs, unsigned long error) {
    return faulted(address, error);
}

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, ACCESSED_BYTES);
} accessed SEC(".maps");

/* What DAMON tells of a range whenever it has looked. */
SEC("tracepoint/damon/damon_aggregated")
int guest_accesses(struct trace_event_raw_damon_aggregated *ctx) {
    u64 target = ctx->target_id;
    if (!ctx->nr_accesses || (u32)bpf_get_current_pid_tgid() != window.thread)
        return 0;
    if (target >= MOST_TARGETS || !(window.targets >> target & 1))
        return 0;
    struct accessed *event = bpf_ringbuf_reserve(&accessed, sizeof(*event), 0);
    if (!event) {
        __sync_fetch_and_add(&window.lost, 1);
        return 0;
    }
    *event = (struct accessed){.start = ctx->start, .end = ctx->end, .target = target};
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
    return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
