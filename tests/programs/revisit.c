// revisit FILE PASSES: reads every page of a file in each pass, always in the same scattered order and without reading
// ahead. Unless the whole file fits into memory, each read waits for storage: a cliff that no load of the processors
// hides.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, STRIDE = 4099 }; // a prime: it comes to every page of any smaller file

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "revisit: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int argc, char **argv) {
    static char page[PAGE];
    if (argc != 3) {
        fprintf(stderr, "usage: revisit FILE PASSES\n");
        return 2;
    }
    int file = open(argv[1], O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) < 0)
        fail(argv[1]);
    long pages = about.st_size / PAGE, passes = strtol(argv[2], NULL, 10);

    // The first reading is from begin to end, and so is quick.
    for (long i = 0; i < pages; i++)
        if (pread(file, page, PAGE, i * PAGE) != PAGE)
            fail("pread");
    if (posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM) != 0)
        fail("posix_fadvise");
    for (long pass = 0; pass < passes; pass++)
        for (long i = 0; i < pages; i++)
            if (pread(file, page, PAGE, i * STRIDE % pages * PAGE) != PAGE)
                fail("pread");
    return 0;
}
