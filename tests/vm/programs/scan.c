/*
 * Programs whose need is known: a heap that is touched in every pass, and a file that is gone through from its begin to
 * its end in every pass. Least-recently-used replacement gives such a loop nothing until the whole file fits.
 *
 *   scan read|write HEAP_MIB FILE_MIB PASSES PATH
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, CHUNK = 256 << 10 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 6 || (strcmp(argv[1], "read") != 0 && strcmp(argv[1], "write") != 0)) {
        fprintf(stderr, "usage: %s read|write HEAP_MIB FILE_MIB PASSES PATH\n", argv[0]);
        return 2;
    }
    int writes = argv[1][0] == 'w';
    size_t heap_bytes = strtoul(argv[2], NULL, 10) * MIB;
    size_t file_bytes = strtoul(argv[3], NULL, 10) * MIB;
    long passes = strtol(argv[4], NULL, 10);

    unsigned char *heap = malloc(heap_bytes + CHUNK);
    if (heap == NULL)
        fail("malloc");
    unsigned char *chunk = heap + heap_bytes;
    memset(heap, 1, heap_bytes + CHUNK);
    int file = open(argv[5], writes ? O_WRONLY | O_CREAT : O_RDONLY, 0644);
    if (file < 0)
        fail(argv[5]);

    unsigned long sum = 0;
    for (long pass = 0; pass < passes; pass++) {
        for (size_t at = 0; at < file_bytes; at += CHUNK) {
            ssize_t moved = writes ? pwrite(file, chunk, CHUNK, (off_t)at) : pread(file, chunk, CHUNK, (off_t)at);
            if (moved != CHUNK)
                fail(argv[5]);
            sum += chunk[pass % CHUNK];
        }
        for (size_t at = 0; at < heap_bytes; at += 4096)
            sum += ++heap[at];
    }
    if (writes && fsync(file) != 0)
        fail("fsync");
    printf("%lu\n", sum);
    return 0;
}
