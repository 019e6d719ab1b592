// Memory, children and files, as every kind needs them.
#include "footprint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void fail(const char *what) {
    fprintf(stderr, "footprint: %s: %s\n", what, strerror(errno));
    exit(1);
}

void truth(const char *name, size_t value) {
    printf("%s=%zu\n", name, value);
}

void truth_breakdown(size_t heap, size_t file, size_t shared, size_t hugetlb) {
    truth("peak_breakdown.heap", heap);
    truth("peak_breakdown.file", file);
    truth("peak_breakdown.shared", shared);
    truth("peak_breakdown.hugetlb", hugetlb);
}

void hold(const struct options *options) {
    fflush(stdout);
    struct timespec rest = {options->hold_ms / 1000, options->hold_ms % 1000 * 1000000L};
    while (nanosleep(&rest, &rest) && errno == EINTR)
        ;
}

void touch(void *start, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE) {
        volatile uint64_t *word = (volatile uint64_t *)((char *)start + at);
        *word = (uintptr_t)word * 0x9E3779B97F4A7C15u + (uint64_t)getpid();
    }
}

void *map_anonymous(size_t bytes, int flags) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    // EINVAL: a kernel without transparent huge pages.
    if (madvise(memory, bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
        fail("madvise");
    return memory;
}

static int ready[2], release[2];

void start_children(const struct options *options, void (*work)(const struct options *, void *), void *memory) {
    fflush(stdout);
    if (pipe(ready) || pipe(release))
        fail("pipe");
    for (unsigned i = 0; i < options->count; i++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            char byte = 0;
            close(release[1]);
            work(options, memory);
            if (write(ready[1], &byte, 1) != 1)
                _exit(1);
            // The parent's end is closed when it is done, or dead.
            while (read(release[0], &byte, 1) < 0 && errno == EINTR)
                ;
            _exit(0);
        }
    }
    for (unsigned i = 0; i < options->count; i++) {
        char byte;
        if (read(ready[0], &byte, 1) != 1)
            fail("a child did not get ready");
    }
}

void release_children(void) {
    close(release[1]);
    for (int status; wait(&status) > 0;) {
        if (status != 0)
            fail("a child failed");
    }
}

int open_file(const struct options *options, int flags) {
    int fd = options->path ? open(options->path, flags, 0600) : open(".", O_TMPFILE | O_RDWR, 0600);
    if (fd < 0)
        fail(options->path ? options->path : "a file in the working directory");
    return fd;
}

void write_file(int fd, size_t bytes) {
    static uint64_t block[1 << 13];
    for (size_t written = 0; written < bytes;) {
        block[0] = written;
        block[PAGE / sizeof *block] = ~written;
        size_t want = bytes - written < sizeof block ? bytes - written : sizeof block;
        ssize_t n = write(fd, block, want);
        if (n < 0)
            fail("write");
        written += (size_t)n;
    }
}
