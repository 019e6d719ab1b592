#include "note.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "../abi.h"
#include "../detour.h"
#include "../process.h"
#include "../runtime.h"
#include "../space.h"
#include "../sys.h"
#include "../text.h"
#include "life.h"

// Descriptors that are remembered; what a call with another one refers to is asked each time.
enum { DESCRIPTORS = 4096 };
// What is remembered of a descriptor is checked after this time: it may have been closed by a call that was not seen.
enum { CHECK_MS = 100 };
// As the tracepoints' side has it (bpf/references.bpf.h): a page that is referenced again so soon by the same thread is
// still at the top of the stack, and the order among threads is kept to so many pages.
enum { REPEAT_MS = 100, RUN_MS = 8, RUN_PAGES = 32 };
enum { PAGES_AT = 32, KIND_AT = 45, TURN_AT = 48, MS_AT = 40 };
// Longer paths are not told: the stack may be small.
enum { LONGEST_PATH = 512, PATHS_TOLD = 1024 };
enum { MOST_PAGES = (1 << (KIND_AT - PAGES_AT)) - 1 };

// What a pipe holds by default.
enum { PIPE_BYTES = 64 << 10 };

enum what_it_is { NOT_KNOWN, NO_FILE, IN_CACHE, NOT_IN_CACHE };

// Written by any thread without a lock: what two of them write at once is wrong for CHECK_MS at most, and each word is
// whole.
struct opened {
    uint64_t offset; // of the open file, where `own_offset`
    uint64_t inode;
    uint32_t device, birth; // as abi.h has them
    uint32_t file;          // their hash
    uint32_t checked_ms;
    uint32_t forks;  // how often this process had forked when it was opened
    uint8_t what;    // enum what_it_is
    uint8_t class;   // enum reference_class
    bool own_offset; // nobody else moves it: it was opened here, and neither duplicated nor inherited
    bool unchecked;  // whether `offset` holds is to be asked at the next call that moves it
    bool mapped;     // it was, and may be still when it is closed
};

// What a thread has referenced last.
struct last {
    struct reference_run *run; // NULL: none was taken yet
    uint64_t first_page, last_page;
    uint32_t file, ms;
    uint8_t kind;
    bool busy; // a handler of signals must not touch it now
};

static struct reference_head *head;
static struct reference_run *runs;
static struct reference *ring;
static struct opened descriptors[DESCRIPTORS];
static uint32_t forks;
static int most_opened;   // the largest number of `descriptors` that is in use
static uint32_t began_ms; // the program, or this process as a child of it
static bool ended;        // it is counted so, or was never counted as begun
static __thread struct last last __attribute__((tls_model("initial-exec")));

static inline uint32_t now_ms(void) {
    struct timespec now = {0};
    // Without a system call.
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void references_put(uint32_t file, uint64_t pages, uint32_t kind, uint64_t place) {
    uint64_t number = __atomic_load_n(&head->head, __ATOMIC_RELAXED);
    do {
        if (number - __atomic_load_n(&head->tail, __ATOMIC_ACQUIRE) >= REFERENCE_RING) {
            __atomic_fetch_add(&head->lost, 1, __ATOMIC_RELAXED);
            return;
        }
    } while (!__atomic_compare_exchange_n(&head->head, &number, number + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    struct reference *entry = &ring[number % REFERENCE_RING];
    uint64_t turn = number / REFERENCE_RING + 1;
    __atomic_store_n(&entry->place, place, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->what, file | pages << PAGES_AT | (uint64_t)kind << KIND_AT | turn << TURN_AT,
                     __ATOMIC_RELEASE);
}

static void put_pages(uint32_t file, uint64_t first, uint64_t pages, uint32_t kind, uint32_t ms) {
    for (uint64_t part; pages; first += part, pages -= part) {
        part = least(pages, MOST_PAGES);
        references_put(file, part, kind, (first & ((1UL << MS_AT) - 1)) | (uint64_t)ms << MS_AT);
    }
}

// The thread's run goes into the ring.
static void put_run(struct reference_run *run) {
    uint64_t pages = run->pages;
    run->pages = 0;
    put_pages(run->file, run->first_page, pages, run->kind, run->ms);
}

// By the rules of `refer` in bpf/references.bpf.h.
static void refer(uint32_t file, uint64_t first, uint64_t end, uint32_t kind, uint32_t ms) {
    struct reference_run *run = last.run;
    if (last.file == file && last.kind == kind && ms - last.ms < REPEAT_MS && first == last.last_page)
        first++;
    bool soon = ms - last.ms < RUN_MS;
    last.ms = ms;
    if (first == end)
        return;
    last.file = file;
    last.kind = kind;
    last.last_page = end - 1;
    uint64_t pages = end - first;
    if (run == runs) {
        put_pages(file, first, pages, kind, ms);
        return;
    }
    if (run->pages && soon && run->file == file && run->kind == kind && run->first_page + run->pages == first &&
        run->pages + pages <= RUN_PAGES) {
        run->pages += pages;
        return;
    }
    if (run->pages)
        put_run(run);
    if (pages >= RUN_PAGES) {
        put_pages(file, first, pages, kind, ms);
        return;
    }
    run->file = file;
    run->first_page = first;
    run->kind = kind;
    run->ms = ms;
    // Last: bursar reads it after a kill at any point.
    __atomic_store_n(&run->pages, pages, __ATOMIC_RELEASE);
}

static void take_run(void) {
    uint64_t number = __atomic_add_fetch(&head->runs, 1, __ATOMIC_RELAXED);
    last.run = number < REFERENCE_RUNS ? &runs[number] : runs;
}

// The bytes of a call, as /proc/PID/io counts them.
static void count(uint64_t bytes, uint32_t kind) {
    struct reference_run *run = last.run;
    uint64_t *sum = kind == REFERENCE_WRITE ? &run->written_bytes : &run->read_bytes;
    if (likely(run != runs))
        *sum += bytes;
    else
        __atomic_fetch_add(sum, bytes, __ATOMIC_RELAXED);
}

static enum reference_class class_of(long magic) {
    switch ((uint32_t)magic) {
    case 0x01021994:
        return REFERENCE_TMPFS;
    case 0x858458f6:
        return REFERENCE_RAMFS;
    case 0x958458f6:
        return REFERENCE_HUGETLBFS;
    case 0x6969:
        return REFERENCE_NFS;
    case 0xff534d42:
    case 0xfe534d42:
    case 0x517b:
        return REFERENCE_CIFS;
    case 0x01021997:
        return REFERENCE_PLAN9;
    case 0x65735546:
        return REFERENCE_FUSE;
    case 0x00c36400:
        return REFERENCE_CEPH;
    case 0x5346414f:
        return REFERENCE_AFS;
    case 0x0bd00bd0:
        return REFERENCE_LUSTRE;
    case 0x47504653:
        return REFERENCE_GPFS;
    case 0x2fc12fc1:
        return REFERENCE_ZFS;
    case 0x19830326:
        return REFERENCE_BEEGFS;
    default:
        return REFERENCE_PAGE_CACHE;
    }
}

// One word of what tells files apart.
static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15UL;
    return hash ^ hash >> 32;
}

struct identity {
    uint64_t inode;
    uint32_t device, birth;
    uint32_t names;
    bool regular, dax;
};

// Of an open file, with the path "", or of a path. `flags`: AT_SYMLINK_NOFOLLOW or 0.
static struct identity identity_of(int file, const char *path, int flags) {
    struct statx found = {0};
    uint32_t mask = STATX_TYPE | STATX_INO | STATX_NLINK | STATX_BTIME;
    if (!sys_failed(sys(SYS_statx, file, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC | flags, mask, &found))) {
        uint64_t birth =
            found.stx_mask & STATX_BTIME ? found.stx_btime.tv_sec * 1000000000UL + found.stx_btime.tv_nsec : 0;
        return (struct identity){.inode = found.stx_ino,
                                 .device = found.stx_dev_major << 20 | found.stx_dev_minor,
                                 .birth = birth,
                                 .names = found.stx_nlink,
                                 .regular = S_ISREG(found.stx_mode),
                                 .dax = found.stx_attributes & 0x00200000 /* STATX_ATTR_DAX */};
    }
    // Before Linux 4.11.
    struct stat status = {0};
    if (sys_failed(sys(SYS_newfstatat, file, path, &status, AT_EMPTY_PATH | flags)))
        return (struct identity){0};
    uint64_t device = status.st_dev;
    return (struct identity){.inode = status.st_ino,
                             .device = (device >> 8 & 0xfff) << 20 | (device & 0xff) | (device >> 12 & 0xfff00),
                             .names = status.st_nlink,
                             .regular = S_ISREG(status.st_mode)};
}

static uint32_t hash_of(struct identity found) {
    return mix(mix(found.inode, found.device), found.birth);
}

static void put_file(struct identity found) {
    references_put(hash_of(found), 0, REFERENCE_FILE, found.inode);
    references_put(hash_of(found), 1, REFERENCE_FILE, found.device | (uint64_t)found.birth << 32);
}

// The path of an open file in parts: it may be closed before bursar could look at it by its descriptor. Those of files
// that the process has told of lately are known to bursar. Whether it was told now.
static bool put_path(int file, uint32_t number) {
    static uint32_t told[PATHS_TOLD];
    uint32_t *last_told = &told[number % PATHS_TOLD];
    if (__atomic_exchange_n(last_told, number, __ATOMIC_RELAXED) == number)
        return false;
    char link[32];
    uint64_t parts[LONGEST_PATH / 8] = {0};
    text_format(link, sizeof link, "/proc/self/fd/%u", file);
    long length = sys(SYS_readlinkat, AT_FDCWD, link, parts, sizeof parts);
    if (sys_failed(length) || length == sizeof parts)
        return false;
    for (long part = 0; part <= length / 8; part++)
        references_put(number, 3 + part, REFERENCE_FILE, parts[part]);
    return true;
}

// What a descriptor is: four system calls where it is a regular file that was not known, else one.
static void look(int file, struct opened *opened, uint32_t ms) {
    struct identity found = identity_of(file, "", 0);
    bool same = opened->what != NOT_KNOWN && opened->inode == found.inode && opened->device == found.device &&
                opened->birth == found.birth;
    opened->checked_ms = ms;
    opened->unchecked = true;
    if (!found.regular) {
        opened->what = NO_FILE;
        return;
    }
    if (same && opened->what != NO_FILE)
        return;
    long flags = sys(SYS_fcntl, file, F_GETFL);
    struct statfs system = {0};
    sys(SYS_fstatfs, file, &system);
    opened->inode = found.inode;
    opened->device = found.device;
    opened->birth = found.birth;
    opened->file = hash_of(found);
    opened->class = found.dax ? REFERENCE_DAX : class_of(system.f_type);
    if (opened->class == REFERENCE_PAGE_CACHE && flags > 0 && flags & O_DIRECT)
        opened->class = REFERENCE_DIRECT;
    opened->what = opened->class == REFERENCE_PAGE_CACHE ? IN_CACHE : NOT_IN_CACHE;
    if (file > __atomic_load_n(&most_opened, __ATOMIC_RELAXED) && file < DESCRIPTORS)
        __atomic_store_n(&most_opened, file, __ATOMIC_RELAXED);
    if (opened->what == IN_CACHE) {
        put_file(found);
        if (__atomic_load_n(&head->wants_paths, __ATOMIC_RELAXED))
            put_path(file, opened->file);
        references_put(opened->file, 2, REFERENCE_FILE, (uint32_t)file | (uint64_t)process.pid << 32);
    } else if (opened->class == REFERENCE_TMPFS || opened->class == REFERENCE_RAMFS) {
        put_file(found);
        if (put_path(file, opened->file))
            references_put(opened->file, 1, REFERENCE_IN_MEMORY, (uint32_t)file | (uint64_t)process.pid << 32);
    }
}

// The state of a descriptor, in `unkept` where there is no room to keep it.
static inline struct opened *opened_as(int file, struct opened *unkept, uint32_t ms) {
    struct opened *opened = (unsigned)file < DESCRIPTORS ? &descriptors[file] : unkept;
    if (unlikely(opened->forks != forks)) {
        opened->forks = forks;
        opened->own_offset = false;
    }
    if (unlikely(opened->what == NOT_KNOWN || ms - opened->checked_ms >= CHECK_MS))
        look(file, opened, ms);
    return opened;
}

// Of a call that has moved the offset of the open file by so many bytes, where it began. A file that is appended to, or
// whose offset others move in a way that is not seen, is found out when it is checked.
static uint64_t moved_from(int file, struct opened *opened, uint64_t bytes) {
    if (opened->own_offset && !opened->unchecked)
        return __atomic_fetch_add(&opened->offset, bytes, __ATOMIC_RELAXED);
    long now = sys(SYS_lseek, file, 0, SEEK_CUR);
    if (sys_failed(now))
        return UINT64_MAX;
    opened->own_offset = opened->own_offset && opened->offset + bytes == (uint64_t)now;
    opened->unchecked = false;
    opened->offset = now;
    return now - bytes;
}

enum { MOVES = -1 }; // for an offset: the call has gone on from that of the open file

// bursar tells anew for as long as it is behind, so that nobody waits for one that was killed.
static void wait_for_room(void) {
    struct timespec moment = {.tv_nsec = 200000};
    uint32_t until;
    while ((until = __atomic_load_n(&head->hold_until_ms, __ATOMIC_RELAXED)) && (int32_t)(until - now_ms()) > 0)
        sys(SYS_nanosleep, &moment, NULL);
}

// A call has read or written so many bytes.
static void note(int file, ssize_t bytes, off_t offset, uint32_t kind) {
    if (bytes <= 0 || last.busy)
        return;
    last.busy = true;
    if (unlikely(!last.run))
        take_run();
    count(bytes, kind);
    uint32_t ms = now_ms();
    struct opened unkept = {0}, *opened = opened_as(file, &unkept, ms);
    if (opened->what == IN_CACHE) {
        uint64_t begin = offset == MOVES ? moved_from(file, opened, bytes) : (uint64_t)offset;
        if (begin != UINT64_MAX)
            refer(opened->file, begin / PAGE, (begin + bytes - 1) / PAGE + 1, kind, ms);
        if (unlikely(__atomic_load_n(&head->hold_until_ms, __ATOMIC_RELAXED)))
            wait_for_room();
    } else if (opened->what == NOT_IN_CACHE) {
        if (offset == MOVES && opened->own_offset)
            __atomic_fetch_add(&opened->offset, bytes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&head->hidden_bytes[opened->class], bytes, __ATOMIC_RELAXED);
    }
    last.busy = false;
}

static void *(*next_mmap)(void *, size_t, int, int, int, off_t);

static void note_mapping(int file, off_t offset, size_t bytes) {
    struct stat status;
    if (last.busy || sys_failed(sys(SYS_fstat, file, &status)))
        return;
    // What is mapped of /dev/zero is shared memory, too.
    if (!S_ISREG(status.st_mode))
        life_shares();
    if (!S_ISREG(status.st_mode) || offset >= status.st_size)
        return;
    last.busy = true;
    if (!last.run)
        take_run();
    uint32_t ms = now_ms();
    struct opened unkept = {0}, *opened = opened_as(file, &unkept, ms);
    uint64_t end = least(offset + bytes, status.st_size);
    opened->mapped = true;
    if (opened->what == IN_CACHE)
        refer(opened->file, offset / PAGE, (end - 1) / PAGE + 1, REFERENCE_MAPPED, ms);
    else
        life_shares();
    last.busy = false;
}

static void *on_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (file >= 0 && !(flags & MAP_ANONYMOUS))
        note_mapping(file, offset, bytes);
    if (flags & MAP_ANONYMOUS && flags & MAP_SHARED)
        life_shares();
    return next_mmap(at, bytes, protection, flags, file, offset);
}

uint32_t references_file(const char *path) {
    // Libraries are most often on one file system.
    static uint32_t device, class = REFERENCE_CLASSES;
    struct identity found = identity_of(AT_FDCWD, path, 0);
    struct statfs system = {0};
    if (!found.regular || found.dax)
        return 0;
    if (class == REFERENCE_CLASSES || device != found.device) {
        class = sys_failed(sys(SYS_statfs, path, &system)) ? REFERENCE_CLASSES : class_of(system.f_type);
        device = found.device;
    }
    if (class != REFERENCE_PAGE_CACHE) {
        life_shares();
        return 0;
    }
    put_file(found);
    return hash_of(found);
}

void references_touched(uint32_t file, uint64_t first, uint64_t end) {
    // What lies so far back that its number would come again is said to be as old as can be said.
    const uint32_t longest = (1 << (64 - MS_AT)) - 1000;
    uint32_t now = now_ms();
    put_pages(file, first, end - first, REFERENCE_FAULT, now - least(now - began_ms, longest));
}

bool references_ended(bool with_io_uring) {
    if (ended)
        return false;
    __atomic_fetch_add(&head->ended, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&head->with_io_uring, with_io_uring, __ATOMIC_RELAXED);
    return ended = true;
}

void references_read(uint64_t bytes) {
    __atomic_fetch_add(&runs->read_bytes, bytes, __ATOMIC_RELAXED);
}

void references_removed(uint32_t file, uint64_t first) {
    if (!file || last.busy)
        return;
    last.busy = true;
    if (last.run && last.run != runs && last.run->pages)
        put_run(last.run);
    put_pages(file, first, 1, REFERENCE_REMOVED, now_ms());
    last.file = 0;
    last.busy = false;
}

uint32_t references_number(int file, const char *path) {
    struct identity found = identity_of(file, path, 0);
    return found.regular ? hash_of(found) : 0;
}

static bool has_open(uint32_t file) {
    for (int i = 0; i <= __atomic_load_n(&most_opened, __ATOMIC_RELAXED); i++)
        if (descriptors[i].what == IN_CACHE && descriptors[i].file == file)
            return true;
    return false;
}

uint32_t references_removable(int directory, const char *path) {
    if (last.busy || !path || !*path)
        return 0;
    struct identity found = identity_of(directory, path, AT_SYMLINK_NOFOLLOW);
    if (!found.regular || found.names > 1 || has_open(hash_of(found)))
        return 0;
    return hash_of(found);
}

// Before the call. Whether another process has it open is not known; one that inherited it, or a mapping, keeps its
// pages.
static void closes(int file) {
    struct opened *opened = (unsigned)file < DESCRIPTORS ? &descriptors[file] : NULL;
    if (!opened || opened->what != IN_CACHE || !opened->own_offset || opened->forks != forks || opened->mapped)
        return;
    struct identity found = identity_of(file, "", 0);
    if (found.regular && !found.names && sys(SYS_getpid) == process.pid)
        references_removed(hash_of(found), 0);
}

static void forget(int file) {
    if ((unsigned)file < DESCRIPTORS) {
        descriptors[file].own_offset = false;
        descriptors[file].what = NOT_KNOWN;
    }
}

// The child of a vfork has its parent's variables and other files.
static void has_opened(int file) {
    if ((unsigned)file >= DESCRIPTORS || sys(SYS_getpid) != process.pid)
        return;
    struct opened *opened = &descriptors[file];
    opened->what = NOT_KNOWN;
    opened->forks = forks;
    opened->offset = 0;
    opened->own_offset = true;
    opened->mapped = false;
}

static void has_cut(int file, int flags) {
    if (file >= 0 && flags & O_TRUNC)
        references_removed(references_number(file, ""), 0);
}

static ssize_t (*next_read)(int, void *, size_t);
static ssize_t (*next_read_nocancel)(int, void *, size_t);
static ssize_t (*next_write)(int, const void *, size_t);
static ssize_t (*next_write_nocancel)(int, const void *, size_t);
static ssize_t (*next_pread)(int, void *, size_t, off_t);
static ssize_t (*next_pread_nocancel)(int, void *, size_t, off_t);
static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*next_readv)(int, const struct iovec *, int);
static ssize_t (*next_writev)(int, const struct iovec *, int);
static ssize_t (*next_preadv)(int, const struct iovec *, int, off_t);
static ssize_t (*next_pwritev)(int, const struct iovec *, int, off_t);
static ssize_t (*next_preadv2)(int, const struct iovec *, int, off_t, int);
static ssize_t (*next_pwritev2)(int, const struct iovec *, int, off_t, int);
static ssize_t (*next_sendfile)(int, int, off_t *, size_t);
static ssize_t (*next_splice)(int, off_t *, int, off_t *, size_t, unsigned);
static ssize_t (*next_copy_file_range)(int, off_t *, int, off_t *, size_t, unsigned);
static off_t (*next_lseek)(int, off_t, int);
static int (*next_open)(const char *, int, mode_t);
static int (*next_openat)(int, const char *, int, mode_t);
static int (*next_open_nocancel)(const char *, int, mode_t);
static void *(*next_shmat)(int, const void *, int);
static int (*next_munmap)(void *, size_t);
static int (*next_madvise)(void *, size_t, int);
static int (*next_brk)(void *);
static int (*next_close)(int);
static int (*next_close_nocancel)(int);
static int (*next_dup)(int);
static int (*next_dup2)(int, int);
static int (*next_dup3)(int, int, int);
static int (*next_fcntl)(int, int, void *);

static ssize_t on_read(int file, void *to, size_t bytes) {
    ssize_t got = next_read(file, to, bytes);
    note(file, got, MOVES, REFERENCE_READ);
    return got;
}

static ssize_t on_read_nocancel(int file, void *to, size_t bytes) {
    ssize_t got = next_read_nocancel(file, to, bytes);
    note(file, got, MOVES, REFERENCE_READ);
    return got;
}

static ssize_t on_write(int file, const void *from, size_t bytes) {
    ssize_t put = next_write(file, from, bytes);
    note(file, put, MOVES, REFERENCE_WRITE);
    return put;
}

static ssize_t on_write_nocancel(int file, const void *from, size_t bytes) {
    ssize_t put = next_write_nocancel(file, from, bytes);
    note(file, put, MOVES, REFERENCE_WRITE);
    return put;
}

static ssize_t on_pread(int file, void *to, size_t bytes, off_t offset) {
    ssize_t got = next_pread(file, to, bytes, offset);
    note(file, got, offset, REFERENCE_READ);
    return got;
}

static ssize_t on_pread_nocancel(int file, void *to, size_t bytes, off_t offset) {
    ssize_t got = next_pread_nocancel(file, to, bytes, offset);
    note(file, got, offset, REFERENCE_READ);
    return got;
}

static ssize_t on_pwrite(int file, const void *from, size_t bytes, off_t offset) {
    ssize_t put = next_pwrite(file, from, bytes, offset);
    note(file, put, offset, REFERENCE_WRITE);
    return put;
}

static ssize_t on_readv(int file, const struct iovec *to, int count) {
    ssize_t got = next_readv(file, to, count);
    note(file, got, MOVES, REFERENCE_READ);
    return got;
}

static ssize_t on_writev(int file, const struct iovec *from, int count) {
    ssize_t put = next_writev(file, from, count);
    note(file, put, MOVES, REFERENCE_WRITE);
    return put;
}

static ssize_t on_preadv(int file, const struct iovec *to, int count, off_t offset) {
    ssize_t got = next_preadv(file, to, count, offset);
    note(file, got, offset, REFERENCE_READ);
    return got;
}

static ssize_t on_pwritev(int file, const struct iovec *from, int count, off_t offset) {
    ssize_t put = next_pwritev(file, from, count, offset);
    note(file, put, offset, REFERENCE_WRITE);
    return put;
}

// An offset of -1 is that of the open file, as here. Where the kernel has no such call, libc calls preadv or readv
// within its own, which are seen there.
static ssize_t on_preadv2(int file, const struct iovec *to, int count, off_t offset, int flags) {
    ssize_t got = next_preadv2(file, to, count, offset, flags);
    note(file, got, offset, REFERENCE_READ);
    return got;
}

static ssize_t on_pwritev2(int file, const struct iovec *from, int count, off_t offset, int flags) {
    ssize_t put = next_pwritev2(file, from, count, offset, flags);
    note(file, put, offset, REFERENCE_WRITE);
    return put;
}

static ssize_t on_sendfile(int to, int from, off_t *offset, size_t bytes) {
    off_t begin = offset ? *offset : MOVES;
    ssize_t sent = next_sendfile(to, from, offset, bytes);
    note(from, sent, begin, REFERENCE_READ);
    note(to, sent, MOVES, REFERENCE_WRITE);
    return sent;
}

// One end is a pipe. What goes by here is not counted in /proc/PID/io.
static ssize_t on_splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t bytes, unsigned flags) {
    off_t from_begin = from_offset ? *from_offset : MOVES, to_begin = to_offset ? *to_offset : MOVES;
    ssize_t moved = next_splice(from, from_offset, to, to_offset, bytes, flags);
    note(from, moved, from_begin, REFERENCE_READ);
    note(to, moved, to_begin, REFERENCE_WRITE);
    return moved;
}

static ssize_t on_copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t bytes,
                                  unsigned flags) {
    off_t from_begin = from_offset ? *from_offset : MOVES, to_begin = to_offset ? *to_offset : MOVES;
    ssize_t moved = next_copy_file_range(from, from_offset, to, to_offset, bytes, flags);
    note(from, moved, from_begin, REFERENCE_READ);
    note(to, moved, to_begin, REFERENCE_WRITE);
    return moved;
}

static off_t on_lseek(int file, off_t offset, int whence) {
    off_t now = next_lseek(file, offset, whence);
    if (now >= 0 && (unsigned)file < DESCRIPTORS)
        __atomic_store_n(&descriptors[file].offset, now, __ATOMIC_RELAXED);
    return now;
}

static int on_open(const char *path, int flags, mode_t mode) {
    int file = next_open(path, flags, mode);
    has_opened(file);
    has_cut(file, flags);
    return file;
}

static int on_open_nocancel(const char *path, int flags, mode_t mode) {
    int file = next_open_nocancel(path, flags, mode);
    has_opened(file);
    has_cut(file, flags);
    return file;
}

static int on_openat(int directory, const char *path, int flags, mode_t mode) {
    int file = next_openat(directory, path, flags, mode);
    has_opened(file);
    has_cut(file, flags);
    return file;
}

// Before the call: another thread may be given the number as soon as it is free.
static int on_close(int file) {
    closes(file);
    forget(file);
    return next_close(file);
}

static int on_close_nocancel(int file) {
    closes(file);
    forget(file);
    return next_close_nocancel(file);
}

// Both then have one offset.
static int duplicated(int from, int to) {
    if ((unsigned)from < DESCRIPTORS)
        descriptors[from].own_offset = false;
    forget(to);
    return to;
}

static int on_dup(int file) {
    return duplicated(file, next_dup(file));
}

static int on_dup2(int file, int to) {
    return duplicated(file, next_dup2(file, to));
}

static int on_dup3(int file, int to, int flags) {
    return duplicated(file, next_dup3(file, to, flags));
}

static int on_fcntl(int file, int command, void *argument) {
    int result = next_fcntl(file, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        return duplicated(file, result);
    // The capacity of a pipe is neither in /proc nor in a limit that is low enough to be taken for it.
    if (command == F_SETPIPE_SZ && result > PIPE_BYTES)
        __atomic_fetch_add(&head->pipe_bytes, result - PIPE_BYTES, __ATOMIC_RELAXED);
    if (command == F_SETFL && (unsigned)file < DESCRIPTORS)
        descriptors[file].what = NOT_KNOWN;
    return result;
}

static void *on_shmat(int segment, const void *at, int flags) {
    life_shares();
    return next_shmat(segment, at, flags);
}

static int on_munmap(void *at, size_t bytes) {
    life_gives_back(bytes);
    return next_munmap(at, bytes);
}

static int on_madvise(void *at, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED || advice == MADV_FREE)
        life_gives_back(bytes);
    return next_madvise(at, bytes, advice);
}

static int on_brk(void *end) {
    static uint64_t before;
    uint64_t now = (uint64_t)end, last = __atomic_exchange_n(&before, now, __ATOMIC_RELAXED);
    if (now < last)
        life_gives_back(last - now);
    return next_brk(end);
}

#define DETOUR(name, which, definer)                                                                                   \
    { #name, on_##which, (void **)&next_##which, NULL, definer }
// Of names for one function (open and open64) one is enough.
static struct detour detours[] = {
    DETOUR(mmap, mmap, FIRST),
    DETOUR(read, read, FIRST),
    DETOUR(write, write, FIRST),
    DETOUR(pread64, pread, FIRST),
    DETOUR(pwrite64, pwrite, FIRST),
    DETOUR(readv, readv, FIRST),
    DETOUR(writev, writev, FIRST),
    DETOUR(preadv64, preadv, FIRST),
    DETOUR(pwritev64, pwritev, FIRST),
    DETOUR(preadv64v2, preadv2, FIRST_IF_ANY),
    DETOUR(pwritev64v2, pwritev2, FIRST_IF_ANY),
    DETOUR(sendfile64, sendfile, FIRST),
    DETOUR(splice, splice, FIRST),
    DETOUR(copy_file_range, copy_file_range, FIRST_IF_ANY),
    DETOUR(lseek64, lseek, FIRST),
    DETOUR(open64, open, FIRST),
    DETOUR(openat64, openat, FIRST),
    DETOUR(close, close, FIRST),
    DETOUR(dup, dup, FIRST),
    DETOUR(dup2, dup2, FIRST),
    DETOUR(dup3, dup3, FIRST),
    DETOUR(fcntl, fcntl, FIRST),
    DETOUR(shmat, shmat, FIRST_IF_ANY),
    DETOUR(munmap, munmap, FIRST),
    DETOUR(madvise, madvise, FIRST),
    DETOUR(brk, brk, FIRST_IF_ANY),
    // What libc calls itself, for stdio's files too.
    DETOUR(__read_nocancel, read_nocancel, FIRST_IF_ANY),
    DETOUR(__write_nocancel, write_nocancel, FIRST_IF_ANY),
    DETOUR(__pread64_nocancel, pread_nocancel, FIRST_IF_ANY),
    DETOUR(__open64_nocancel, open_nocancel, FIRST_IF_ANY),
    DETOUR(__close_nocancel, close_nocancel, FIRST_IF_ANY),
};
enum { DETOURS = sizeof detours / sizeof *detours };

void references_detour(void) {
    detours_patch(detours, DETOURS);
    if (!next_read || !next_pread)
        __atomic_fetch_add(&head->unpatched, 1, __ATOMIC_RELAXED);
}

static void before_fork(void) {
    forks++; // what is open from here on has a shared offset
}

static void in_parent(void) {
}

static void in_child(void) {
    process.pid = sys(SYS_getpid);
    last.run = NULL;
    last.busy = false;
    ended = true;
    began_ms = now_ms();
    life_begin(true);
}

bool references_memory(uint64_t *begin, uint64_t *end) {
    *begin = (uint64_t)head;
    *end = *begin + REFERENCE_FILE_BYTES;
    return head;
}

bool references_begin(void) {
    const char *path = getenv("BURSAR_REFERENCES");
    if (!path)
        return false;
    int file = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    struct stat status = {0};
    long pages = -EINVAL;
    if (!sys_failed(sys(SYS_fstat, file, &status)) && status.st_size == REFERENCE_FILE_BYTES)
        pages = sys(SYS_mmap, own_place(REFERENCE_FILE_BYTES), REFERENCE_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                    file, 0);
    sys(SYS_close, file);
    if (sys_failed(pages))
        return false;
    head = (struct reference_head *)pages;
    if (memcmp(head->magic, REFERENCE_MAGIC, sizeof head->magic))
        return false;
    runs = (struct reference_run *)(pages + REFERENCE_RUNS_AT);
    ring = (struct reference *)(pages + REFERENCE_RING_AT);
    __atomic_fetch_add(&head->processes, 1, __ATOMIC_RELAXED);
    began_ms = now_ms();
    life_begin(false);
    at_fork(before_fork, in_parent, in_child);
    return true;
}
