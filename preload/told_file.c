#include "told_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "process.h"
#include "runtime.h"
#include "space.h"
#include "sys.h"
#include "text.h"

static int create(const char *directory, const char *name) {
    char path[4400];
    int file = -EEXIST;
    for (uint32_t life = 0; file == -EEXIST && life < 1000; life++) {
        text_format(path, sizeof path, "%s/%s.%s.%lu.%lu", directory, name, process.host, process.pid, process.ticks);
        if (life)
            text_format(path + strlen(path), sizeof path - strlen(path), ".%u", life);
        file = sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    return file;
}

void *told_file(const char *directory, const char *name, uint64_t bytes) {
    bytes = up(bytes, PAGE);
    // To go beyond it is a signal.
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
    int file = files.rlim_cur < bytes ? -EFBIG : create(directory, name);
    if (file < 0)
        return NULL;
    // Blocks, not a hole: a full disk is told here, and not by a signal later.
    static const char zeroes[PAGE];
    bool there = true;
    for (uint64_t at = 0; at < bytes && there; at += PAGE)
        there = sys(SYS_pwrite64, file, zeroes, PAGE, at) == PAGE;
    long pages = -ENOSPC;
    if (there)
        pages = sys(SYS_mmap, own_place(bytes), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    sys(SYS_close, file);
    return sys_failed(pages) ? NULL : (void *)pages;
}
