// Takes memory from a pool as the runtime does, says whether it was all zeroes, writes all over it and keeps it until
// its input ends.
//
//   lease SOCKET BYTES LEAST NODE         one line: status, segments, bytes, free bytes, and whether all was zeroes
//   lease SOCKET BYTES LEAST NODE child   ends at once; a child, whose PID is the second line, keeps the memory
//   lease SOCKET BYTES LEAST NODE pipe    keeps one page, pinned in a pipe, and no mapping; at the end says what it
//   reads there lease SOCKET silent|rubbish|long|gone a client that does not do as it should
#include "../../preload/abi.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static const uint64_t PATTERN = 0x5ec7e7;

static int connected(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (connect(fd, (void *)&address, sizeof address)) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void wait_for_end(void) {
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}

static int misbehave(int fd, const char *how) {
    static char packet[100000];
    struct pool_request request = {.magic = POOL_MAGIC, .node = -1, .bytes = 1, .least = 1};
    if (!strcmp(how, "silent"))
        wait_for_end();
    if (!strcmp(how, "gone"))
        return send(fd, &request, sizeof request, 0) < 0;
    if (send(fd, packet, strcmp(how, "long") ? 3 : sizeof packet, 0) < 0)
        return 1;
    struct pool_reply reply;
    if (recv(fd, &reply, sizeof reply, 0) != sizeof reply)
        return 1;
    printf("%u\n", reply.status);
    return 0;
}

static int receive(int fd, struct pool_reply *reply, int *files) {
    char control[CMSG_SPACE(sizeof(int) * POOL_SEGMENTS)];
    struct iovec part = {reply, sizeof *reply};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got != sizeof *reply) {
        fprintf(stderr, "received %zd\n", got);
        exit(1);
    }
    struct cmsghdr *passed = CMSG_FIRSTHDR(&message);
    if (!passed)
        return 0;
    memcpy(files, CMSG_DATA(passed), passed->cmsg_len - CMSG_LEN(0));
    return (passed->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

int main(int argc, char **argv) {
    int fd = connected(argv[1]);
    if (argc == 3)
        return misbehave(fd, argv[2]);
    if (argc < 5)
        return 1;
    const char *also = argc > 5 ? argv[5] : "";
    struct pool_request request = {.magic = POOL_MAGIC,
                                   .node = atoi(argv[4]),
                                   .bytes = strtoull(argv[2], 0, 10),
                                   .least = strtoull(argv[3], 0, 10)};
    static struct pool_reply reply;
    int files[POOL_SEGMENTS], pinned[2];
    if (send(fd, &request, sizeof request, 0) != sizeof request || pipe(pinned))
        return 1;
    int passed = receive(fd, &reply, files);
    close(fd);
    uint64_t bytes = 0;
    int zero = 1;
    for (int i = 0; i < passed; i++) {
        size_t size = reply.segment[i].bytes;
        uint64_t *words = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, files[i], 0);
        if (words == MAP_FAILED) {
            perror("mmap");
            return 1;
        }
        close(files[i]);
        for (size_t word = 0; word < size / 8; word++) {
            zero &= !words[word];
            words[word] = PATTERN + word;
        }
        struct iovec page = {words, 4096};
        if (!strcmp(also, "pipe") && i == 0 && vmsplice(pinned[1], &page, 1, 0) != 4096) {
            perror("vmsplice");
            return 1;
        }
        if (!strcmp(also, "pipe"))
            munmap(words, size);
        bytes += size;
    }
    printf("%u %d %llu %llu %s\n", reply.status, passed, (unsigned long long)bytes,
           (unsigned long long)reply.free_bytes, zero ? "zero" : "data");
    fflush(stdout);
    if (!strcmp(also, "child")) {
        pid_t child = fork();
        if (child == 0)
            wait_for_end();
        else
            printf("%d\n", child);
        return 0;
    }
    wait_for_end();
    if (!strcmp(also, "pipe")) {
        uint64_t page[512];
        int own = read(pinned[0], page, sizeof page) == sizeof page;
        for (size_t word = 0; word < 512; word++)
            own &= page[word] == PATTERN + word;
        puts(own ? "own" : "another's");
    }
    return 0;
}
