// The small process from which an observed command is started.
//
// wait4's ru_maxrss survives exec: a process keeps the peak of the image it replaced. A command started straight from
// bursar would therefore never read less than bursar itself. This program is exec'd first (its own peak is a few
// hundred KiB), and the command is a fork of it; CLONE_PARENT makes that fork a child of bursar, which so gets its
// status and its rusage from wait4, and no process stands between the two while the command runs.
//
// usage: stub GO REPORT COMMAND [ARG ...]
//   GO      descriptor: one byte read from it says that the cgroup and the trackers are in place; end of file: give up
//   REPORT  descriptor: the command's pid is written to it, and then its exec errno if the exec failed
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int give_up(int report, int error) {
    int sent[2] = {0, error};
    return write(report, sent, sizeof sent) == (ssize_t)sizeof sent ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        return 2;
    }
    int go = atoi(argv[1]);
    int report = atoi(argv[2]);
    fcntl(go, F_SETFD, FD_CLOEXEC);
    fcntl(report, F_SETFD, FD_CLOEXEC);

    char byte;
    ssize_t got;
    do {
        got = read(go, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got != 1) {
        return 0;
    }

    // The raw call: glibc's fork has no CLONE_PARENT. Without CLONE_VM both sides go on with their own copy.
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0L, 0L, 0L, 0L);
    if (pid < 0) {
        return give_up(report, errno);
    }
    if (pid == 0) {
        int self = (int)syscall(SYS_getpid);
        if (write(report, &self, sizeof self) != (ssize_t)sizeof self) {
            _exit(125);
        }
        execvp(argv[3], argv + 3);
        int error = errno;
        if (write(report, &error, sizeof error) != (ssize_t)sizeof error) {
            _exit(125);
        }
        _exit(error == ENOENT ? 127 : 126);
    }
    return 0;
}
