/*
 * What the programs know of the kernel: only the fields they read. Every access is relocated when the programs are
 * loaded (CO-RE), so offsets and unrelated fields do not matter; what differs in meaning between kernels is said beside
 * it.
 */
#ifndef BURSAR_KERNEL_H
#define BURSAR_KERNEL_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u64 __be64;
typedef unsigned char bool;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

/* From the kernel's uapi; fixed for good. */
enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_TASK_STORAGE = 29,
    BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
    BPF_F_NO_PREALLOC = 1,
    BPF_ANY = 0,
    BPF_NOEXIST = 1,
    BPF_RB_NO_WAKEUP = 1,
    BPF_RB_FORCE_WAKEUP = 2,
    BPF_RB_AVAIL_DATA = 0,
};

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_DAX (1 << 13)
#define SIGNAL_GROUP_EXIT 4
#define O_APPEND 02000
#define PF_MEMALLOC 0x800
#define O_DIRECT 040000 /* x86; elsewhere only asked where iomap tells nothing */
#define MAGIC_EXT 0xef53
#define MAGIC_XFS 0x58465342
#define MAGIC_BDEV 0x62646576

#if defined(__TARGET_ARCH_x86)
#define TS_COMPAT 2
#define NR_READ 0
#define NR_WRITE 1
#define NR_MMAP 9
#define NR_MPROTECT 10
#define NR_MUNMAP 11
#define NR_BRK 12
#define NR_PREAD64 17
#define NR_PWRITE64 18
#define NR_READV 19
#define NR_WRITEV 20
#define NR_MREMAP 25
#define NR_MADVISE 28
#define NR_SENDFILE 40
#define NR_MLOCK 149
#define NR_MLOCKALL 151
#define NR_SPLICE 275
#define NR_PREADV 295
#define NR_PWRITEV 296
#define NR_MLOCK2 325
#define NR_COPY_FILE_RANGE 326
#define NR_PREADV2 327
#define NR_PWRITEV2 328
#define NR_PROCESS_MADVISE 440
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
    int counter;
} atomic_t;

struct hlist_node {
    struct hlist_node *next;
};

struct hlist_head {
    struct hlist_node *first;
};

struct qstr {
    const unsigned char *name;
};

struct dentry {
    struct dentry *d_parent;
    struct qstr d_name;
    union {
        struct hlist_node d_alias;
    } d_u;
};

struct super_block {
    u32 s_dev;
    unsigned long s_magic;
};

struct inode {
    u16 i_mode;
    u32 i_flags;
    struct super_block *i_sb;
    unsigned long i_ino;
    s64 i_size;
    u32 i_generation;
    struct hlist_head i_dentry;
};

struct address_space {
    struct inode *host;
};

struct folio {
    struct address_space *mapping;
    unsigned long index;
    unsigned long _flags_1;
};

/* Until 6.5 the order had a byte of its own; since then it is the low byte of _flags_1. */
struct folio___byte {
    unsigned char _folio_order;
};

enum pageflags { PG_head = 6 };

enum bpf_func_id___loop { BPF_FUNC_loop___known = 181 };

struct file {
    struct address_space *f_mapping;
    unsigned int f_flags;
    s64 f_pos;
};

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
    unsigned long *open_fds;
};

struct files_struct {
    struct fdtable *fdt;
};

struct kiocb {
    struct file *ki_filp;
    s64 ki_pos;
};

struct iov_iter {
    unsigned long count;
};

struct task_delay_info {
    u64 blkio_delay;
};

struct task_io_accounting {
    u64 syscr;
    u64 syscw;
};

struct sched_entity {
    u64 sum_exec_runtime;
};

struct signal_struct {
    atomic_t live;
    unsigned int flags;
    int group_exit_code;
    u64 utime;
    u64 stime;
    u64 sum_sched_runtime;
    unsigned long min_flt;
    unsigned long maj_flt;
    unsigned long maxrss;
};

struct thread_info {
    u32 status;
};

struct ns_common {
    unsigned int inum;
};

struct pid_namespace {
    struct ns_common ns;
};

/* A process's number in one PID namespace. */
struct upid {
    int nr;
    struct pid_namespace *ns;
};

/* One number for each level of PID namespaces, the first namespace's first. */
struct pid {
    unsigned int level;
    struct upid numbers[1];
};

struct task_struct {
    struct thread_info thread_info;
    unsigned int flags;
    int pid;
    int tgid;
    int exit_code;
    struct task_struct *real_parent;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    struct sched_entity se;
    u64 utime;
    u64 stime;
    u64 start_time;
    u64 start_boottime;
    unsigned long nvcsw;
    unsigned long min_flt;
    unsigned long maj_flt;
    char comm[16];
    struct files_struct *files;
    struct signal_struct *signal;
    struct task_io_accounting ioac;
    struct task_delay_info *delays;
    struct mm_struct *mm;
};

struct percpu_counter {
    s64 count;
};

struct mm_struct {
    unsigned long hiwater_rss;
    struct percpu_counter rss_stat[4];
};

struct linux_binprm;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
    unsigned long r10;
    unsigned long dx;
    unsigned long si;
    unsigned long di;
    unsigned long orig_ax;
};
#else
struct pt_regs;
#endif

#pragma clang attribute pop

#endif
