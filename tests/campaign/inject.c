// Runs a program and makes one of its system calls fail, or kills it there.
//
// A seccomp filter hands every system call to this process (SECCOMP_RET_USER_NOTIF), which lets it go on, answers it
// with an error, or kills the caller. The filter is inherited, but only calls of processes that execute PROGRAM, or its
// stub in memory, are counted: the command that PROGRAM runs is left alone. strace cannot tell the two apart.
//
// usage: inject STATUS LOG count PROGRAM [ARG ...]               writes "NAME COUNT" of each system call to LOG
//        inject STATUS LOG fail NUMBER NTH ERRNO PROGRAM …       the NTH call of that number fails
//        inject STATUS LOG kill NTH PROGRAM …                    SIGKILL to the caller of the NTH call
//        inject STATUS LOG none PROGRAM …                        nothing is done
//   STATUS  a file that receives the wait status of PROGRAM as a number when it ends
//   LOG     a file that receives what was done: process, number, first path argument
// It ends when the last process with the filter has ended, which may be later than PROGRAM.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// A call on a descriptor of a pipe, a socket or the like is counted by its number and this: the kernel does not answer
// it as it does the same call on a file.
enum { LAST_NUMBER = 512, NOT_A_FILE = 1000, COUNTERS = NOT_A_FILE + LAST_NUMBER };

// Calls that cannot fail, or that are too frequent to be of use.
static const int UNTOUCHED[] = {SYS_futex,       SYS_exit,          SYS_exit_group,      SYS_rt_sigreturn,
                                SYS_sched_yield, SYS_clock_gettime, SYS_restart_syscall, SYS_getpid,
                                SYS_gettid,      SYS_rseq};

static void fail(const char *what) {
    fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    exit(99);
}

static int install(void) {
    enum { UNTOUCHED_COUNT = sizeof UNTOUCHED / sizeof *UNTOUCHED };
    struct sock_filter code[UNTOUCHED_COUNT + 3];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < UNTOUCHED_COUNT; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UNTOUCHED[i], UNTOUCHED_COUNT - i, 0);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = n, .filter = code};
    // A root without no_new_privs, so that PROGRAM finds itself as usual.
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        return -1;
    }
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
}

static int is_own(int pid, const char *program) {
    char link[64], target[4096];
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) {
        return 0;
    }
    target[length] = 0;
    return strcmp(target, program) == 0 || strncmp(target, "/memfd:bursar-stub", 18) == 0;
}

static int class_of(int task, const struct seccomp_data *call) {
    static const int ON_DESCRIPTORS[] = {SYS_read,  SYS_write, SYS_pread64,   SYS_pwrite64,  SYS_readv,    SYS_writev,
                                         SYS_fstat, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fallocate};
    // It makes a descriptor only by this.
    if (call->nr == SYS_fcntl && call->args[1] != F_DUPFD && call->args[1] != F_DUPFD_CLOEXEC) {
        return call->nr + NOT_A_FILE;
    }
    for (size_t i = 0; i < sizeof ON_DESCRIPTORS / sizeof *ON_DESCRIPTORS; i++) {
        if (call->nr == ON_DESCRIPTORS[i]) {
            char link[64], target[2] = "";
            snprintf(link, sizeof link, "/proc/%d/fd/%d", task, (int)call->args[0]);
            return readlink(link, target, 1) == 1 && *target == '/' ? call->nr : call->nr + NOT_A_FILE;
        }
    }
    return call->nr;
}

static int process_of(int task) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", task);
    FILE *file = fopen(path, "re");
    int process = task;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Tgid: %d", &process) == 1) {
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return process;
}

// The argument as text, if it is an address of some.
static void text_at(int pid, unsigned long long address, char *text, size_t size) {
    struct iovec here = {text, size - 1}, there = {(void *)(uintptr_t)address, size - 1};
    ssize_t got = address < 4096 ? -1 : process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (got < 0) {
        there.iov_len = here.iov_len = 4096 - address % 4096 < size ? 4096 - address % 4096 : size - 1;
        got = address < 4096 ? -1 : process_vm_readv(pid, &here, 1, &there, 1, 0);
    }
    text[got < 0 ? 0 : got] = 0;
    for (char *at = text; *at; at++) {
        if (*at < ' ' || *at > '~') {
            *at = at == text ? 0 : '.';
        }
    }
}

// Whoever waits for the file finds it whole.
static void tell_end(pid_t child, const char *path) {
    int status = 0;
    waitpid(child, &status, 0);
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *file = fopen(beside, "we");
    if (!file || fprintf(file, "%d\n", status) < 0 || fclose(file) || rename(beside, path)) {
        fail(path);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: inject STATUS LOG count|none|kill NTH|fail NUMBER NTH ERRNO PROGRAM [ARG ...]\n");
        return 2;
    }
    const char *status_path = argv[1], *mode = argv[3];
    FILE *log = fopen(argv[2], "we");
    if (!log) {
        fail("LOG");
    }
    char **command = argv + 4;
    long nth = 0, number = -1, error = 0;
    if (strcmp(mode, "kill") == 0 && argc > 5) {
        nth = atol(*command++);
    } else if (strcmp(mode, "fail") == 0 && argc > 7) {
        number = atol(command[0]);
        nth = atol(command[1]);
        error = atol(command[2]);
        command += 3;
    }
    char program[4096];
    if (!realpath(*command, program)) {
        fail(*command);
    }

    // The descriptor is made by the last system call that is not handed over, so its number goes by memory.
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *shared = -2;
    pid_t child = fork();
    if (child < 0) {
        fail("fork");
    }
    if (child == 0) {
        *shared = install();
        execv(program, command);
        _exit(98);
    }
    while (*shared == -2) {
        usleep(100);
    }
    if (*shared < 0) {
        fail("seccomp");
    }
    int handle = (int)syscall(SYS_pidfd_open, child, 0);
    int listener = (int)syscall(SYS_pidfd_getfd, handle, *shared, 0);
    if (listener < 0) {
        fail("pidfd_getfd");
    }
    // Whoever reads what PROGRAM prints is to see its end.
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 2; fd++) {
        dup2(null, fd);
    }

    static long counts[COUNTERS];
    long total = 0;
    int ended = 0, done = 0;
    for (;;) {
        struct pollfd wait[2] = {{.fd = listener, .events = POLLIN}, {.fd = ended ? -1 : handle, .events = POLLIN}};
        if (poll(wait, 2, -1) < 0) {
            continue;
        }
        if (wait[1].revents) {
            tell_end(child, status_path);
            ended = 1;
        }
        if (wait[0].revents & POLLIN) {
            struct seccomp_notif asked = {0};
            if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked)) {
                continue;
            }
            struct seccomp_notif_resp answer = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
            int task = (int)asked.pid, call = asked.data.nr;
            if (call >= 0 && call < LAST_NUMBER && is_own(task, program)) {
                int class = class_of(task, &asked.data);
                counts[class]++;
                total++;
                int hit = number >= 0 ? class == number && counts[class] == nth : nth > 0 && total == nth;
                if (hit && !done) {
                    char one[200], two[200];
                    text_at(task, asked.data.args[0], one, sizeof one);
                    text_at(task, asked.data.args[1], two, sizeof two);
                    fprintf(log, "%s process %d%s call %d (%llx %s, %llx %s, %llx, %llx)\n", mode, process_of(task),
                            process_of(task) == child ? "" : " (helper)", call, asked.data.args[0], one,
                            asked.data.args[1], two, asked.data.args[2], asked.data.args[3]);
                    fflush(log);
                    done = 1;
                    if (error) {
                        answer.flags = 0;
                        answer.error = (int)-error;
                    } else {
                        kill(process_of(task), SIGKILL);
                    }
                }
            }
            ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        } else if (wait[0].revents & POLLHUP) {
            break;
        }
    }
    if (!ended) {
        tell_end(child, status_path);
    }
    if (strcmp(mode, "count") == 0) {
        for (int call = 0; call < COUNTERS; call++) {
            if (counts[call]) {
                fprintf(log, "%d %ld\n", call, counts[call]);
            }
        }
    }
    fclose(log);
    return 0;
}
