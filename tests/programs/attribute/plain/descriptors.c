// A program that has opened as many files as it may before it asks for memory.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "plain.h"

enum { MOST_FILES = 1024 };

void make_no_descriptor(size_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        fail("getrlimit");
    // Some machines allow a million.
    if (limit.rlim_cur > MOST_FILES)
        limit.rlim_cur = MOST_FILES;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        fail("setrlimit");
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        continue;
    if (errno != EMFILE)
        fail("open");
    char *block = malloc(bytes);
    if (!block)
        fail("malloc");
    touch(block, bytes);
    hold();
}
