// Prints what a process inherits through fork and exec, a property a line, or changes it and becomes a command.
//
// usage: inherited FILE [ARG ...]             prints to FILE
//        inherited set COMMAND [ARG ...]      changes what no program of the system changes, and becomes COMMAND
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { JOIN_SESSION_KEYRING = 1, DESCRIBE = 6, SESSION_KEYRING = -3 };
enum { DESCRIPTORS = 64, RESOURCES = 16 };

extern char **environ;

static FILE *out;

static void number(const char *name, long long value) {
    fprintf(out, "%s %lld\n", name, value);
}

// Bytes that are not printable in hexadecimal, so that each string is one line.
static void text(const char *name, const char *bytes) {
    fprintf(out, "%s ", name);
    for (; *bytes; bytes++) {
        fprintf(out, isprint((unsigned char)*bytes) ? "%c" : "\\x%02x", (unsigned char)*bytes);
    }
    fputc('\n', out);
}

static void link_of(const char *name, const char *path) {
    char target[4096];
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = 0;
    text(name, target);
}

static void file(const char *path) {
    char bytes[4096];
    int from = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = from < 0 ? 0 : read(from, bytes, sizeof bytes - 1);
    bytes[length < 0 ? 0 : length] = 0;
    close(from);
    text(path, bytes);
}

// The lines of its status that an exec keeps.
static void status(void) {
    static const char *const kept[] = {
        "Uid:",    "Gid:",          "Groups:",       "SigPnd:", "ShdPnd:", "SigBlk:",     "SigIgn:",
        "CapInh:", "CapPrm:",       "CapEff:",       "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:",
        "Umask:",  "Cpus_allowed:", "Mems_allowed:", "NSpgid:", "NSsid:",  "Speculation"};
    char line[4096];
    FILE *from = fopen("/proc/self/status", "re");
    while (from && fgets(line, sizeof line, from)) {
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
            if (!strncmp(line, kept[i], strlen(kept[i]))) {
                line[strcspn(line, "\n")] = 0;
                text("status", line);
            }
        }
    }
    if (from) {
        fclose(from);
    }
}

static void descriptors(const int *flags) {
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        char name[32], path[64];
        snprintf(name, sizeof name, "descriptor-%d", fd);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (flags[fd] >= 0) {
            link_of(name, path);
            fprintf(out, "%s flags %o\n", name, flags[fd]);
        }
    }
}

static void limits(void) {
    for (int resource = 0; resource < RESOURCES; resource++) {
        struct rlimit limit;
        if (!getrlimit(resource, &limit)) {
            fprintf(out, "limit %d %llx %llx\n", resource, (unsigned long long)limit.rlim_cur,
                    (unsigned long long)limit.rlim_max);
        }
    }
}

static int print(int argc, char **argv) {
    int flags[DESCRIPTORS], death = 0, mode = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        flags[fd] = fcntl(fd, F_GETFL);
    }
    // Above those that are listed.
    int to = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    out = fdopen(to, "w");
    if (!out) {
        return 1;
    }
    struct sched_param priority = {0};
    sched_getparam(0, &priority);
    prctl(PR_GET_PDEATHSIG, &death);
    unsigned long nodes[16] = {0};
    syscall(SYS_get_mempolicy, &mode, nodes, sizeof nodes * 8, NULL, 0);
    descriptors(flags);
    status();
    limits();
    number("nice", getpriority(PRIO_PROCESS, 0));
    number("policy", sched_getscheduler(0));
    number("priority", priority.sched_priority);
    number("io-priority", syscall(SYS_ioprio_get, 1, 0));
    number("memory-policy", mode);
    number("memory-nodes", (long long)nodes[0]);
    number("session", getsid(0));
    number("group", getpgrp());
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    number("terminal", terminal >= 0);
    number("foreground", terminal >= 0 && tcgetpgrp(terminal) == getpgrp());
    link_of("directory", "/proc/self/cwd");
    link_of("root", "/proc/self/root");
    link_of("program", "/proc/self/exe");
    file("/proc/self/oom_score_adj");
    file("/proc/self/coredump_filter");
    file("/proc/self/loginuid");
    file("/proc/self/comm");
    number("securebits", prctl(PR_GET_SECUREBITS));
    number("personality", personality(0xffffffff));
    number("dumpable", prctl(PR_GET_DUMPABLE));
    number("thp-disable", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    number("timer-slack", prctl(PR_GET_TIMERSLACK));
    number("death-signal", death);
    char keyring[256] = "";
    syscall(SYS_keyctl, DESCRIBE, SESSION_KEYRING, keyring, sizeof keyring - 1);
    text("keyring", keyring);
    for (int i = 0; i < argc; i++) {
        text("argument", argv[i]);
    }
    for (char **entry = environ; *entry; entry++) {
        text("environment", *entry);
    }
    return fclose(out) != 0;
}

static int set(char **command) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 70000);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    syscall(SYS_keyctl, JOIN_SESSION_KEYRING, "bursar-test");
    // Twice the same name, no name, no value, and an order that no sorting gives.
    static char *odd[] = {"Z=1", "A=first", "A=second", "=nameless", "no-value", "BYTES=\xff\x01", "EMPTY=", NULL};
    char *entries[sizeof odd / sizeof *odd + 8];
    size_t count = 0;
    static const char *const passed[] = {"PATH", "HOME", "XDG_STATE_HOME", "TMPDIR"};
    for (char **entry = odd; *entry; entry++) {
        entries[count++] = *entry;
    }
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        const char *value = getenv(passed[i]);
        if (value && asprintf(&entries[count], "%s=%s", passed[i], value) > 0) {
            count++;
        }
    }
    entries[count] = NULL;
    environ = entries;
    execvp(*command, command);
    return 1;
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "set")) {
        return set(argv + 2);
    }
    return argc > 1 ? print(argc, argv) : 2;
}
