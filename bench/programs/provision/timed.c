// timed REPORT [4k] [count] -- COMMAND…: runs it and writes seconds=NUMBER to REPORT, from before its exec to its end,
// by one that is close: no launcher is timed. 4k: it and what it starts get no huge pages unless they ask the kernel's
// pool. count: its page faults, too, of user space and on its behalf; what is populated at request is none. Exits as
// the command does.
#include <linux/perf_event.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "provision.h"

static int open_counter(void) {
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .disabled = 1,
        .inherit = 1,
        .enable_on_exec = 1,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        fail("perf_event_open");
    return fd;
}

int main(int argc, char **argv) {
    int counter = -1, at = 2;
    for (; at < argc && strcmp(argv[at], "--"); at++) {
        if (!strcmp(argv[at], "4k") && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
            fail("PR_SET_THP_DISABLE");
        if (!strcmp(argv[at], "count"))
            counter = open_counter();
    }
    if (at + 1 >= argc)
        fail("usage: timed REPORT [4k] [count] -- COMMAND");
    uint64_t begin = nanoseconds();
    pid_t child;
    // Nothing is obtained or copied here, so that this process asks a pool for nothing.
    errno = posix_spawnp(&child, argv[at + 1], NULL, NULL, argv + at + 1, environ);
    if (errno)
        fail(argv[at + 1]);
    int status;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    double seconds = (double)(nanoseconds() - begin) * 1e-9;
    uint64_t faults = 0;
    if (counter >= 0 && read(counter, &faults, sizeof faults) != sizeof faults)
        fail("read the counter");
    char report[96];
    int length = snprintf(report, sizeof report, "seconds=%.6f\n", seconds);
    if (counter >= 0)
        length += snprintf(report + length, sizeof report - (size_t)length, "page_faults=%lu\n", faults);
    write_whole(open_or_fail(argv[1], O_WRONLY | O_CREAT | O_TRUNC), report, (size_t)length);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
