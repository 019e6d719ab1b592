// misbehave HOW [VALUE]: programs that an observer must survive and report truly.
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "misbehave: %s: %s\n", what, strerror(errno));
    exit(1);
}

static pid_t start(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    return child;
}

static void sleep_ms(long ms) {
    usleep((useconds_t)ms * 1000);
}

static int exit_with(long status) {
    return (int)status;
}

// Two that ignore SIGTERM: a child, and one that left the session and its parent.
static int strays(long ms) {
    if (start() == 0) {
        signal(SIGTERM, SIG_IGN);
        if (start() == 0) {
            setsid();
            if (start() != 0)
                _exit(0);
        }
        sleep_ms(ms);
        _exit(0);
    }
    sleep_ms(ms);
    return 0;
}

// Chains of processes that ignore SIGTERM, each of which is ended as soon as it has started the next.
static int hop(long chains) {
    time_t end = time(NULL) + 60;
    for (long i = 0; i < chains; i++) {
        if (start() == 0) {
            signal(SIGTERM, SIG_IGN);
            setsid();
            while (time(NULL) < end) {
                pid_t next = fork();
                if (next > 0)
                    _exit(0);
                if (next < 0)
                    sleep_ms(1);
            }
            _exit(0);
        }
    }
    sleep_ms(60000);
    return 0;
}

// Only under a limit of processes: `prlimit --nproc=64` as a user of its own, or a cgroup with `pids.max`.
static int bomb(long seconds) {
    struct rlimit limit;
    if (getuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) || limit.rlim_max > 64) {
        fputs("misbehave: bomb: set a limit of 64 processes and be a user of its own\n", stderr);
        return 1;
    }
    time_t end = time(NULL) + seconds;
    if (start() == 0) {
        signal(SIGTERM, SIG_IGN);
        setsid();
        while (time(NULL) < end) {
            if (fork() < 0)
                sleep_ms(1);
        }
        _exit(0);
    }
    sleep_ms(seconds * 1000);
    return 0;
}

static int die_by_signal(long number) {
    // No core file: the test's directory stays clean.
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal((int)number, SIG_DFL);
    raise((int)number);
    return 1;
}

static int daemonize(long ms) {
    if (start() != 0)
        return 0;
    setsid();
    if (start() != 0)
        _exit(0);
    sleep_ms(ms);
    return 0;
}

static int close_descriptors(long ms) {
    closefrom(0);
    sleep_ms(ms);
    return 0;
}

static int ignore_term(long ms) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    puts("ready");
    fflush(stdout);
    sleep_ms(ms);
    return 0;
}

// The child has the parent's session and descriptors and simply goes on.
static int outlive(long ms) {
    if (start() != 0)
        return 0;
    sleep_ms(ms);
    return 0;
}

// The child takes MiB of memory; when it is killed for that, the parent does not care.
static int oom_child(long mib) {
    pid_t child = start();
    if (child == 0) {
        size_t bytes = (size_t)mib << 20;
        char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            fail("mmap");
        for (size_t at = 0; at < bytes; at += 4096)
            *(volatile char *)(memory + at) = 1;
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child_killed=%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}

static int change_user(long uid) {
    if (setgroups(0, NULL) || setgid((gid_t)uid) || setuid((uid_t)uid))
        fail("setuid");
    printf("uid=%u\n", (unsigned)getuid());
    fflush(stdout);
    sleep_ms(300);
    return 0;
}

// A tree that grows as fast as it can be read: each process starts the next and ends.
static int relay(long hops) {
    for (long i = 0; i < hops; i++) {
        if (start() != 0)
            _exit(0);
    }
    puts("last");
    return 0;
}

static int stop_itself(long ms) {
    if (start() == 0) {
        sleep_ms(ms);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    wait(NULL);
    return 0;
}

static const struct way {
    const char *name;
    int (*run)(long value);
    long value;
    const char *help;
} ways[] = {
    {"exit", exit_with, 3, "exits with status VALUE"},
    {"signal", die_by_signal, SIGSEGV, "kills itself by signal VALUE"},
    {"daemonize", daemonize, 500, "goes to the background by double fork for VALUE ms"},
    {"close", close_descriptors, 300, "closes all descriptors and lives for VALUE ms"},
    {"ignore-term", ignore_term, 60000, "ignores SIGTERM and SIGINT for VALUE ms"},
    {"strays", strays, 60000, "has children for VALUE ms that ignore SIGTERM, one of them a daemon"},
    {"hop", hop, 2, "VALUE chains of processes for 60 s that ignore SIGTERM, each ended by its fork"},
    {"bomb", bomb, 60, "forks for VALUE s as fast as it can; its processes ignore SIGTERM. Only under a limit of 64"},
    {"outlive", outlive, 500, "exits while its child lives for VALUE ms"},
    {"oom-child", oom_child, 256, "its child takes VALUE MiB; exits with 0 if that child is killed"},
    {"user", change_user, 65534, "becomes user VALUE"},
    {"relay", relay, 100, "VALUE processes, each started by the one before that ends at once"},
    {"stop", stop_itself, 300, "stops itself (SIGSTOP) and is continued after VALUE ms"},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc >= 2 && argc <= 3 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, argv[1]) == 0)
            return ways[i].run(argc == 3 ? atol(argv[2]) : ways[i].value);
    }
    fputs("usage: misbehave HOW [VALUE]\n", stderr);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        fprintf(stderr, "  %-12s %s (default %ld)\n", ways[i].name, ways[i].help, ways[i].value);
    return 2;
}
