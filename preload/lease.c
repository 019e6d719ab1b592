#include "lease.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "descriptor.h"
#include "process.h"
#include "sys.h"
#include "text.h"
#include "told.h"

struct segment segments[SEGMENTS];
uint32_t segment_count;
uint64_t lease_free_bytes, lease_page_bytes;

enum { AGAIN_NS = 100000000 };

static struct sockaddr_un broker;
static uint64_t size;       // what is leased at once, and no more; 0: as it is needed
static uint64_t refused_ns; // when there was too little, or nobody answered; asked again after a while
static enum passed refused;
static bool begun; // the size has been asked for

void lease_begin(void) {
    const char *path = getenv("BURSAR_POOL");
    if (!path || strlen(path) >= sizeof broker.sun_path)
        return;
    broker.sun_family = AF_UNIX;
    strcpy(broker.sun_path, path);
    size = number_of("BURSAR_POOL_SIZE", 0);
}

bool lease_possible(void) {
    return broker.sun_family;
}

static int connect_to_broker(void) {
    int line = sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (line < 0)
        return -1;
    // A broker that hangs must not hang the program.
    struct timeval patience = {.tv_sec = 5};
    sys(SYS_setsockopt, line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sys(SYS_setsockopt, line, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!sys_failed(sys(SYS_connect, line, &broker, sizeof broker)))
        return line;
    sys(SYS_close, line);
    return -1;
}

static void take_in(int file, const struct pool_segment *given) {
    struct stat found;
    bool whole = given->bytes && given->bytes % lease_page_bytes == 0;
    // Half of the descriptors it may have are left to the program.
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &files);
    bool room = segment_count < SEGMENTS && segment_count < files.rlim_cur / 2;
    if (!room || !whole || sys_failed(sys(SYS_fstat, file, &found))) {
        sys(SYS_close, file);
        return;
    }
    segments[segment_count++] = (struct segment){
        .file = out_of_the_way(file),
        .device = found.st_dev,
        .inode = found.st_ino,
        .bytes = given->bytes,
    };
    told->leased_bytes += given->bytes;
}

// One question and its answer; false: nobody answers.
static bool ask(uint64_t bytes, uint64_t least, struct pool_reply *reply) {
    struct pool_request request = {POOL_MAGIC, (int32_t)told->node_plus_1 - 1, 0, bytes, least};
    int line = connect_to_broker();
    if (line < 0)
        return false;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(POOL_SEGMENTS * sizeof(int))];
    } control;
    struct iovec into = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = sizeof control;
    memset(reply, 0, sizeof *reply);
    long got = sys(SYS_sendto, line, &request, sizeof request, MSG_NOSIGNAL, 0, 0);
    if (got == sizeof request)
        got = sys(SYS_recvmsg, line, &message, MSG_CMSG_CLOEXEC);
    sys(SYS_close, line);
    if (got < (long)offsetof(struct pool_reply, segment))
        return false;
    uint64_t page = reply->page_bytes;
    bool known = page >= 2 << 20 && (page & (page - 1)) == 0 && (!lease_page_bytes || lease_page_bytes == page);
    if (known)
        lease_page_bytes = page;
    lease_free_bytes = reply->free_bytes;
    uint32_t taken = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        uint32_t files = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (uint32_t i = 0; i < files; i++) {
            int file;
            memcpy(&file, CMSG_DATA(head) + i * sizeof file, sizeof file);
            bool named = known && taken < reply->segments && taken < POOL_SEGMENTS && !reply->segment[taken].dirty;
            if (named)
                take_in(file, &reply->segment[taken++]);
            else
                sys(SYS_close, file);
        }
    }
    return known;
}

static enum passed more(uint64_t bytes) {
    static struct pool_reply reply;
    if (size && begun)
        return PASSED_EXHAUSTED;
    uint64_t wanted = size > bytes ? size : bytes, before = told->leased_bytes, got = 0;
    // A program that grows does not ask for every step.
    if (!size && before / 4 > wanted)
        wanted = before / 4;
    do {
        if (!ask(wanted - got, got ? 0 : bytes, &reply))
            return got >= bytes ? PASSED_REASONS : PASSED_NO_POOL;
        begun = true;
        got = told->leased_bytes - before;
    } while (got < wanted && reply.status == POOL_GRANTED && reply.segments == POOL_SEGMENTS);
    if (got >= bytes)
        return PASSED_REASONS;
    return reply.status == POOL_OVER_USER || reply.status == POOL_OVER_CGROUP ? PASSED_CAP : PASSED_EXHAUSTED;
}

enum passed lease_more(uint64_t bytes) {
    if (!lease_possible())
        return PASSED_NO_POOL;
    told_open();
    uint64_t began = now_ns();
    if (refused_ns && began - refused_ns < AGAIN_NS)
        return refused;
    enum passed why = more(bytes);
    refused_ns = why == PASSED_REASONS ? 0 : now_ns();
    refused = why;
    told->lease_ns += now_ns() - began;
    return why;
}

void lease_ask(void) {
    static struct pool_reply reply;
    if (lease_possible())
        ask(0, 0, &reply);
}

bool is_still(int file, uint64_t device, uint64_t inode) {
    struct stat found;
    return !sys_failed(sys(SYS_fstat, file, &found)) && found.st_dev == device && found.st_ino == inode;
}

bool lease_holds(const struct segment *segment) {
    return is_still(segment->file, segment->device, segment->inode);
}

void lease_forget(void) {
    for (uint32_t i = 0; i < segment_count; i++)
        if (lease_holds(&segments[i]))
            sys(SYS_close, segments[i].file);
    segment_count = 0;
    begun = false;
    refused_ns = 0;
}
