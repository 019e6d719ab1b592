// mapped FILE PASSES [STRIDE]: touches each page of a mapped file in each pass, or each STRIDE-th page first, then each
// one behind these, and so on. Each page takes about a microsecond.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096, ROUNDS = 1000 };

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "mapped: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: mapped FILE PASSES [STRIDE]\n");
        return 2;
    }
    int file = open(argv[1], O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) < 0)
        fail(argv[1]);
    const unsigned char *bytes = mmap(NULL, about.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED)
        fail("mmap");
    long pages = about.st_size / PAGE, passes = strtol(argv[2], NULL, 10);
    long stride = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
    unsigned long sum = 0;
    for (long pass = 0; pass < passes; pass++)
        for (long first = 0; first < stride; first++)
            for (long page = first; page < pages; page += stride)
                for (long round = 0; round < ROUNDS; round++)
                    sum = sum * 31 + bytes[page * PAGE + round];
    printf("%lu\n", sum);
    return 0;
}
