/* What the programs keep of page faults. Mirrored in linux::faults, byte for byte. */
#ifndef BURSAR_FAULTS_H
#define BURSAR_FAULTS_H

enum kind {
    KIND_BASE = 0,
    KIND_LARGE = 1,
    KIND_HUGE = 2,
    KIND_ZERO = 3,
    KIND_COPY = 4,
    KIND_FILE = 5,
    KIND_SHARED = 6,
    KIND_SWAP = 7,
    KIND_HUGETLB = 8,
    KIND_OTHER = 9,
    KIND_USERFAULT = 10,
    KINDS = 11,
};

enum cause {
    CAUSE_COMPACTION = 0,
    CAUSE_RECLAIM = 1,
    CAUSE_COLLAPSE = 2,
    CAUSE_OFF_CPU = 3,
    CAUSES = 4,
};

/* Histograms of one kind: of faults that stayed on their processor, and of those that left it, with and without that.
 */
enum histogram_of {
    OF_UNDISTURBED = 0,
    OF_DISTURBED = 1,
    OF_DISTURBED_ON_CPU = 2,
    HISTOGRAMS = 3,
};

/* Linear below 64 ns, then 64 buckets to each power of two: a bucket's middle is at most 0.8 % off. */
#define SUB_BUCKETS_LOG2 6
#define SUB_BUCKETS (1 << SUB_BUCKETS_LOG2)
#define LARGEST_LOG2 40 /* 2^41 ns are 36 minutes; what is longer counts there */
#define BUCKETS ((LARGEST_LOG2 - SUB_BUCKETS_LOG2 + 2) * SUB_BUCKETS)

struct histogram {
    u64 counts[BUCKETS];
};

/* The last one: nothing was allocated. */
#define ORDERS 12
#define ORDER_NONE (ORDERS - 1)

#define SLOW_NS 50000

struct of_cause {
    u64 count;
    u64 sum_ns;  /* of the whole faults */
    u64 part_ns; /* spent so */
};

struct of_order {
    u64 count;
    u64 sum_ns;
    u64 max_ns;
};

struct figures {
    u64 count;
    u64 sum_ns;
    u64 max_ns;
    u64 max_on_cpu_ns;
    u64 kernel_count;
    u64 major_count;
    u64 inner; /* programs that ran within the faults, but for the first and the last */
    u64 slow_count;
    u64 slow_sum_ns;
    u64 slow_causes[CAUSES];
    struct of_cause causes[CAUSES];
    struct of_order orders[ORDERS];
};

/* System calls that change what memory a process has; madvise by what it is asked for. */
enum call {
    CALL_MMAP = 0,
    CALL_MUNMAP = 1,
    CALL_MREMAP = 2,
    CALL_MPROTECT = 3,
    CALL_BRK = 4,
    CALL_MLOCK = 5,
    CALL_POPULATE = 6,
    CALL_COLLAPSE = 7,
    CALL_RELEASE = 8,
    CALL_ADVISE = 9,
    CALL_PROCESS_ADVISE = 10,
    CALLS = 11,
    CALL_NONE = 255,
};

struct call_figures {
    u64 count;
    u64 sum_ns;
    u64 max_ns;
    u64 populated; /* bytes, where the call asks for that */
    u64 allocated; /* pages of memory, without page tables */
    u64 populating_count;
    u64 populating_ns;
    u64 parts_ns[CAUSES];
};

/* So many moments of 2^MOMENT_LOG2 ns each are kept before they are written over: 8.6 s. */
#define MOMENTS 1024
#define MOMENT_LOG2 23

struct moment {
    u64 number; /* CLOCK_MONOTONIC >> MOMENT_LOG2 */
    u64 count;
    u64 sum_ns;
    u64 max_ns;
};

#define SLOWEST 64

struct slow_fault {
    u64 end_ns;
    u64 latency_ns;
    u64 address;
    u64 parts_ns[CAUSES];
    u32 pid; /* the reader's number for the process */
    u8 kind;
    u8 order;
    u8 causes; /* a bit each */
    u8 in_kernel;
};

struct slowest {
    u64 floor_ns; /* the least of them, once there are SLOWEST */
    u32 used;
    u32 least; /* where it is */
    struct slow_fault faults[SLOWEST];
};

/* What came to no fault that was timed. */
enum missed {
    MISSED_UNFINISHED = 0, /* no page was mapped in the end */
    MISSED_UNTIMED = 1,    /* its begin was not seen */
    MISSED_THREADS = 2,    /* could not be followed */
    MISSED = 3,
};

struct settings {
    s64 fixed_ns;      /* taken off every latency */
    u64 inner_ns;      /* and this for each program that ran within */
    u32 pmd_order;     /* of a huge page */
    u32 pid_namespace; /* the reader's; 0: the first one, in which the kernel counts */
};

#endif
