#include "prezero.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "arena.h"
#include "descriptor.h"
#include "lease.h"
#include "space.h"
#include "sys.h"
#include "text.h"

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1
#define MFD_ALLOW_SEALING 2
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SHRINK 2
#endif

static struct sockaddr_un launcher;
static char bell_path[sizeof launcher.sun_path];
// Line and bell, and what they are: the program may have closed them and have something else of those numbers.
static struct own {
    int file;
    uint64_t device, inode;
} line = {.file = -1}, bell = {.file = -1};
static struct pool_zeroing *shared;
// What is free for a child is not for its parent, where they share the memory of the pool: a clone that is no function
// of libc's has a copy of all that is known here. This page is zero there, Linux 4.14.
static uint32_t *mine;
static bool tried;

void prezero_begin(void) {
    const char *folder = getenv("BURSAR_PROVISION");
    if (!folder || strlen(folder) + sizeof "/zero" > sizeof launcher.sun_path)
        return;
    launcher.sun_family = AF_UNIX;
    text_format(launcher.sun_path, sizeof launcher.sun_path, "%s/zero", folder);
    text_format(bell_path, sizeof bell_path, "%s/bell", folder);
}

static bool own(struct own *own, int low) {
    struct stat found = {0};
    if (low < 0)
        return false;
    own->file = out_of_the_way(low);
    sys(SYS_fstat, own->file, &found);
    own->device = found.st_dev;
    own->inode = found.st_ino;
    return true;
}

static bool is_ours(const struct own *own) {
    return is_still(own->file, own->device, own->inode);
}

static void disown(struct own *own) {
    if (is_ours(own))
        sys(SYS_close, own->file);
    own->file = -1;
}

static bool is_shared(void) {
    return shared && *mine;
}

static bool begin_mine(void) {
    if (!mine)
        mine = arena_pages(PAGE);
    if (!mine || sys_failed(sys(SYS_madvise, mine, PAGE, MADV_WIPEONFORK)))
        return false;
    *mine = 1;
    return true;
}

// One message; what it needs goes along. It goes at once or not at all.
static bool send_message(struct pool_to_zero message, int file) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof file)];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &file, sizeof file);
    struct iovec from = {&message, sizeof message};
    struct msghdr whole = {.msg_iov = &from, .msg_iovlen = 1, .msg_control = &control};
    whole.msg_controllen = sizeof control;
    return sys(SYS_sendmsg, line.file, &whole, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof message;
}

static bool share(void) {
    // To go beyond it is a signal.
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
    int file = files.rlim_cur < sizeof *shared ? -1 : sys(SYS_memfd_create, "bursar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return false;
    bool sized = !sys_failed(sys(SYS_ftruncate, file, sizeof *shared));
    // Who maps it relies on its length.
    sized = sized && !sys_failed(sys(SYS_fcntl, file, F_ADD_SEALS, F_SEAL_SHRINK));
    const uint64_t bytes = up(sizeof *shared, PAGE);
    long at = -1;
    if (sized)
        at = sys(SYS_mmap, own_place(bytes), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    bool sent = !sys_failed(at) && send_message((struct pool_to_zero){ZERO_MAGIC, 0, 0, 0}, file);
    sys(SYS_close, file);
    if (sent)
        shared = (struct pool_zeroing *)at;
    else if (!sys_failed(at))
        sys(SYS_munmap, at, bytes);
    return sent;
}

bool prezero_start(void) {
    if (tried)
        return is_shared();
    tried = true;
    // Also for reading: to write where nobody reads any more would be a signal.
    bool begun = launcher.sun_family && begin_mine() &&
                 own(&line, sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) &&
                 !sys_failed(sys(SYS_connect, line.file, &launcher, sizeof launcher)) &&
                 own(&bell, sys(SYS_openat, AT_FDCWD, bell_path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0)) && share();
    if (!begun) {
        disown(&line);
        disown(&bell);
        return false;
    }
    for (uint32_t segment = 0; segment < segment_count; segment++)
        prezero_add(segment);
    return true;
}

void prezero_add(uint32_t number) {
    const struct segment *segment = &segments[number];
    const uint64_t units = segment->bytes / lease_page_bytes;
    if (is_shared() && is_ours(&line) && lease_holds(segment) && segment->first_unit + units <= POOL_ZEROING_UNITS)
        send_message((struct pool_to_zero){ZERO_MAGIC, segment->first_unit, units, lease_page_bytes}, segment->file);
}

bool prezero_offer(uint32_t unit) {
    if (!is_shared() || unit >= POOL_ZEROING_UNITS)
        return false;
    __atomic_store_n(&shared->state[unit], POOL_TO_ZERO, __ATOMIC_SEQ_CST);
    // Whoever falls asleep looks once more after it has said so.
    if (__atomic_load_n(&shared->asleep, __ATOMIC_SEQ_CST) && is_ours(&bell)) {
        __atomic_store_n(&shared->asleep, 0, __ATOMIC_RELAXED);
        sys(SYS_write, bell.file, "", 1);
    }
    return true;
}

enum prezeroed prezero_look(uint32_t unit) {
    if (!is_shared())
        return PREZERO_OFFERED;
    uint8_t state = __atomic_load_n(&shared->state[unit], __ATOMIC_ACQUIRE);
    return state == POOL_ZEROED ? PREZERO_DONE : state == POOL_BEING_ZEROED ? PREZERO_BUSY : PREZERO_OFFERED;
}

bool prezero_withdraw(uint32_t unit) {
    uint8_t offered = POOL_TO_ZERO;
    return !is_shared() || __atomic_compare_exchange_n(&shared->state[unit], &offered, POOL_NOT_TO_ZERO, false,
                                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool prezero_lives(void) {
    char byte;
    return is_shared() && is_ours(&line) && sys(SYS_recvfrom, line.file, &byte, 1, MSG_DONTWAIT, 0, 0) == -EAGAIN;
}

void prezero_forget(void) {
    disown(&line);
    disown(&bell);
    if (shared)
        sys(SYS_munmap, shared, up(sizeof *shared, PAGE));
    shared = NULL;
    tried = false;
}
