// What the benchmark programs share: errors, whole reads and writes, reproducible noise.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1UL << 20)

static inline _Noreturn void fail(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, errno ? strerror(errno) : "wrong data");
    exit(1);
}

// The i-th number of a fixed random sequence (splitmix64).
static inline uint64_t noise(uint64_t i) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory)
        fail("malloc");
    return memory;
}

static inline int open_or_fail(const char *path, int flags) {
    int fd = open(path, flags, 0644);
    if (fd < 0)
        fail(path);
    return fd;
}

static inline void write_whole(int fd, const void *data, size_t bytes) {
    for (const char *at = data; bytes > 0;) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0)
            fail("write");
        at += n;
        bytes -= (size_t)n;
    }
}

static inline void read_whole(int fd, void *data, size_t bytes, off_t from) {
    for (char *at = data; bytes > 0;) {
        errno = 0;
        ssize_t n = pread(fd, at, bytes, from);
        if (n <= 0)
            fail("read");
        at += n;
        from += n;
        bytes -= (size_t)n;
    }
}
