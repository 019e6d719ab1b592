// The small process from which an observed command is started.
//
// wait4's ru_maxrss survives exec: a process keeps the peak of the image it replaced. A command started straight from
// bursar would therefore never read less than bursar itself. This program is exec'd first (its own peak is a few
// hundred KiB), and the command is a fork of it; CLONE_PARENT makes that fork a child of bursar, which so gets its
// status and its rusage from wait4, and no process stands between the two while the command runs.
//
// What bursar changes of itself, or Rust's runtime of it, the stub undoes for the command: ignored signals, limits,
// closed standard streams, the signal that the death of the parent sends, a policy that forks do not inherit. Its
// environment is changed here, so that the rest of it stays as it is, byte for byte.
//
// usage: stub GO REPORT IGNORED CLOSED LIMITS DEATH SCHEDULING INTO COUNT TASKS{COUNT} COUNT SET{COUNT}
//             COMMAND [ARG ...]
//   GO      descriptor: one byte read from it says that the cgroup and the trackers are in place; end of file: give up
//   REPORT  descriptor: the command's pid is written to it, and then its exec errno if the exec failed; or why there is
//           no command: 0 and fork's errno, or -1 and why it could not come into its cgroup
//   IGNORED mask, in hexadecimal, of the signals that the command begins with ignored, bit 0 for signal 1
//   CLOSED  mask of the standard streams that the command begins without, bit 0 for standard input
//   LIMITS  limits that the command has: RESOURCE:SOFT:HARD,... in hexadecimal
//   DEATH   the signal that it gets when bursar dies, or 0
//   SCHEDULING a policy that forks do not inherit: POLICY:NICE:PRIORITY:RUNTIME:DEADLINE:PERIOD, or nothing
//   INTO    the directory of its cgroup v2, or nothing
//   TASKS   the `tasks` files of its cgroups v1
//   SET     NAME=VALUE, what is set in its environment
//
// Whoever moves another process to a cgroup waits until all processors have scheduled (10 ms on two); who is forked
// there, or moves itself as a thread, does not.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_FORK = 0, NO_CGROUP = -1 };

static int give_up(int report, int what, int error) {
    int sent[2] = {what, error};
    return write(report, sent, sizeof sent) == (ssize_t)sizeof sent ? 0 : 1;
}

// What is written to a cgroup's file by itself comes there. 0, or -1 and errno.
static int join(int directory, const char *file) {
    int opened = openat(directory, file, O_WRONLY | O_CLOEXEC);
    if (opened < 0) {
        return -1;
    }
    ssize_t written = write(opened, "0", 1);
    int error = errno;
    close(opened);
    errno = error;
    return written == 1 ? 0 : -1;
}

// The raw calls: glibc's fork has no CLONE_PARENT. Without CLONE_VM both sides go on with their own copy. The command's
// signal is the stub's own, SIGCHLD, as with clone().
static long fork_into(int directory) {
    struct clone_args into = {.flags = CLONE_PARENT | CLONE_INTO_CGROUP, .cgroup = directory};
    return syscall(SYS_clone3, &into, sizeof into);
}

static long fork_here(void) {
    return syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0L, 0L, 0L, 0L);
}

// An exec resets what has a handler to the default, and leaves alone what is ignored. The raw call: glibc's refuses the
// two signals of its own, which posix_spawn leaves ignored.
static void ignore(unsigned long long mask) {
    for (int number = 1; number <= 64; number++) {
        struct {
            void (*handler)(int);
            unsigned long flags, restorer, mask;
        } action = {.handler = mask >> (number - 1) & 1 ? SIG_IGN : SIG_DFL};
        syscall(SYS_rt_sigaction, number, &action, NULL, 8);
    }
}

static void limit(const char *limits) {
    while (*limits) {
        char *end;
        int resource = (int)strtoul(limits, &end, 16);
        struct rlimit both = {.rlim_cur = strtoull(end + 1, &end, 16)};
        both.rlim_max = strtoull(end + 1, &end, 16);
        setrlimit(resource, &both);
        limits = *end ? end + 1 : end;
    }
}

// struct sched_attr of linux/sched/types.h, which cannot be included beside glibc's sched.h.
struct scheduling {
    unsigned size, policy;
    unsigned long long flags;
    int nice;
    unsigned priority;
    unsigned long long runtime, deadline, period;
};

static void schedule(const char *how) {
    if (!*how) {
        return;
    }
    char *end;
    struct scheduling all = {.size = sizeof all, .flags = SCHED_FLAG_RESET_ON_FORK};
    all.policy = (unsigned)strtoul(how, &end, 10);
    all.nice = (int)strtol(end + 1, &end, 10);
    all.priority = (unsigned)strtoul(end + 1, &end, 10);
    all.runtime = strtoull(end + 1, &end, 10);
    all.deadline = strtoull(end + 1, &end, 10);
    all.period = strtoull(end + 1, &end, 10);
    syscall(SYS_sched_setattr, 0, &all, 0);
}

int main(int argc, char **argv) {
    enum { FIXED = 10 };
    int count = argc > FIXED ? atoi(argv[FIXED - 1]) : 0;
    if (argc < FIXED + count + 2 || argc < FIXED + count + 2 + atoi(argv[FIXED + count])) {
        return 2;
    }
    int go = atoi(argv[1]);
    int report = atoi(argv[2]);
    ignore(strtoull(argv[3], NULL, 16));
    int closed = atoi(argv[4]);
    const char *limits = argv[5], *scheduling = argv[7], *into = argv[8];
    int death = atoi(argv[6]);
    char **tasks = argv + FIXED, **joined = tasks + count;
    char **set = joined + 1, **command = set + atoi(*joined);
    for (; set < command; set++) {
        putenv(*set);
    }
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

    for (; tasks < joined; tasks++) {
        if (join(AT_FDCWD, *tasks)) {
            return give_up(report, NO_CGROUP, errno);
        }
    }
    long pid = -1;
    if (*into) {
        int directory = open(into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0) {
            return give_up(report, NO_CGROUP, errno);
        }
        pid = fork_into(directory);
        // Before Linux 5.7, and where clone3 is not let through, as in some containers.
        if (pid < 0 && join(directory, "cgroup.procs")) {
            return give_up(report, NO_CGROUP, errno);
        }
    }
    if (pid < 0) {
        pid = fork_here();
    }
    if (pid < 0) {
        return give_up(report, NO_FORK, errno);
    }
    if (pid == 0) {
        int self = (int)syscall(SYS_getpid);
        if (write(report, &self, sizeof self) != (ssize_t)sizeof self) {
            _exit(125);
        }
        if (death) {
            prctl(PR_SET_PDEATHSIG, death);
        }
        for (int fd = 0; fd < 3; fd++) {
            if (closed >> fd & 1) {
                close(fd);
            }
        }
        limit(limits);
        schedule(scheduling);
        execvp(*command, command);
        int error = errno;
        if (write(report, &error, sizeof error) != (ssize_t)sizeof error) {
            _exit(125);
        }
        _exit(error == ENOENT ? 127 : 126);
    }
    return 0;
}
