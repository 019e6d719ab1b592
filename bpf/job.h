/* What the programs tell the reader. Mirrored in linux::bpf, byte for byte. */
#ifndef BURSAR_JOB_H
#define BURSAR_JOB_H

/* The reader's two mappings of the ring count as its resident memory: twice this. */
#define RING_BYTES (2 * 1024 * 1024)

enum event_type {
    EVENT_REFERENCE = 1,
    EVENT_ADDED = 2,
    EVENT_FILE = 3,
    EVENT_FORK = 4,
    EVENT_EXEC = 5,
    EVENT_EXIT = 6,
};

enum kind {
    KIND_READ = 0,
    KIND_WRITE = 1,
    KIND_FAULT = 2,
    KIND_REMOVAL = 3,
};

enum class {
    CLASS_PAGE_CACHE = 0,
    CLASS_DIRECT = 1,
    CLASS_DAX = 2,
    CLASS_TMPFS = 3,
    CLASS_RAMFS = 4,
    CLASS_HUGETLBFS = 5,
    CLASS_NFS = 6,
    CLASS_CIFS = 7,
    CLASS_9P = 8,
    CLASS_FUSE = 9,
    CLASS_CEPH = 10,
    CLASS_AFS = 11,
    CLASS_LUSTRE = 12,
    CLASS_GPFS = 13,
    CLASS_ZFS = 14,
    CLASS_BEEGFS = 15,
    CLASS_COMPAT = 16,
    CLASSES = 17,
};

/* Writes told exactly by the file system make the dirtying of its pages redundant. */
struct settings {
    u8 ext4_writes;
    u8 xfs_writes;
    u8 direct;
    u8 page_shift;
    u32 pid_namespace; /* the reader's; 0: the first one, in which the kernel counts */
};

struct hidden {
    u64 uses;
    u64 bytes;
    u64 bytes_unknown;
};

struct event_reference {
    u32 type; /* kind in bits 8 to 15 */
    u32 device;
    u64 inode;
    u64 time;
    u64 first;
    u32 pages;
    u32 generation;
};

struct event_added {
    u32 type;
    u32 device;
    u64 inode;
    u64 first;
    u32 pages;
    u32 generation;
};

#define MAX_DEPTH 24
#define NAME_BYTES 256
#define NAMES_BYTES 768

struct event_file {
    u32 type;
    u32 device;
    u64 inode;
    u32 generation;
    u32 length;                           /* of the names; 0: not known */
    char names[NAMES_BYTES + NAME_BYTES]; /* each ended by NUL, leaf first */
};

struct event_fork {
    u32 type;
    u32 pid;
    u32 parent;
    u32 own_pid;       /* its number in its own PID namespace */
    u32 pid_namespace; /* that namespace */
    u32 pad;
    u64 start_time;
    u64 start_boottime;
    char comm[16];
};

struct event_exec {
    u32 type;
    u32 pid;
    char comm[16];
};

struct event_exit {
    u32 type;
    u32 pid;
    u32 parent;
    u32 exit_code;
    u32 own_pid;
    u32 pid_namespace;
    u32 key; /* the kernel's number, by which its sums are kept */
    u32 pad;
    u64 time;
    u64 start_time;
    u64 start_boottime;
    u64 maxrss_pages;
    u64 utime_ns;
    u64 stime_ns;
    u64 runtime_ns;
    u64 minor_faults;
    u64 major_faults;
    char comm[16];
};

#endif
