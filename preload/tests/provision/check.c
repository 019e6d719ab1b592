#include "check.h"
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct test_case *const __start_cases[], *const __stop_cases[];

char program[PATH_MAX];
static bool lenient;
static size_t accessible;

__thread int line_of_case;
static __thread sigjmp_buf before;
static __thread const char *volatile fault_at;

// Neither of the two allocates, as either may be called where nothing may be.
static void say(const char *text, int length) {
    if (write(2, text, length) != length)
        _exit(1);
}

void failed(const char *file, int line, const char *what) {
    char text[400];
    const char *base = strrchr(file, '/');
    say(text, snprintf(text, sizeof text, "%s:%d: not so: %s (errno: %s; the last check of contents is on line %d)\n",
                       base ? base + 1 : file, line, what, strerrordesc_np(errno), line_of_case));
    _exit(1);
}

void skip(const char *why) {
    say(why, strlen(why));
    say("\n", 1);
    _exit(SKIPPED);
}

char *map(size_t bytes) {
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED);
    return at;
}

void unmap(char *at, size_t bytes) {
    check(munmap(at, bytes) == 0);
}

static uint64_t word(size_t offset, uint64_t seed) {
    return (offset / 8 + 1) * 0x9e3779b97f4a7c15 ^ seed;
}

void fill(char *at, size_t from, size_t to, uint64_t seed) {
    for (size_t offset = from; offset < to; offset += 8)
        *(uint64_t *)(at + offset) = word(offset, seed);
}

void(check_filled)(const char *at, size_t from, size_t to, uint64_t seed) {
    uint64_t differences = 0;
    for (size_t offset = from; offset < to; offset += 8)
        differences |= *(const uint64_t *)(at + offset) ^ word(offset, seed);
    check(!differences && "what was written is there");
}

void(check_zero)(const char *at, size_t from, size_t to) {
    uint64_t all = 0;
    for (size_t offset = from; offset < to; offset += 8)
        all |= *(const uint64_t *)(at + offset);
    check(!all && "there are only zeroes");
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    check(info->si_addr == fault_at && "the fault is where the access was");
    siglongjmp(before, signal);
}

static int signal_of(char *at, bool writes) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, segv, bus;
    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    fault_at = at;
    int signal = sigsetjmp(before, 1);
    if (!signal) {
        char byte = *(volatile char *)at;
        if (writes)
            *(volatile char *)at = byte;
    }
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return signal;
}

int signal_of_read(const char *at) {
    return signal_of((char *)at, false);
}

int signal_of_write(char *at) {
    return signal_of(at, true);
}

void(check_gone)(const char *at, size_t from, size_t to) {
    for (size_t offset = from; offset < to; offset += PAGE) {
        const char *unit = (const char *)((uintptr_t)(at + offset) & -UNIT);
        unsigned char there;
        errno = 0;
        bool gone = mincore((char *)at + offset, PAGE, &there) == -1 && errno == ENOMEM;
        gone = signal_of_read(at + offset) == SIGSEGV && gone;
        if (!gone && lenient && (unit < at + from || unit + UNIT > at + to))
            accessible++;
        else
            check(gone && "what was unmapped is gone");
    }
}

void(check_faults_only)(char *at, size_t bytes, size_t from, size_t to, bool writes) {
    for (size_t offset = 0; offset < bytes; offset += PAGE) {
        int expected = offset >= from && offset < to ? SIGSEGV : 0;
        int first = signal_of(at + offset, writes), last = signal_of(at + offset + PAGE - 1, writes);
        check(first == expected && last == expected && "just what is protected faults");
    }
}

void(check_ends_well)(int pid) {
    int status;
    check(pid > 0 && waitpid(pid, &status, 0) == pid);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void(in_child)(void (*run)(void *), void *argument) {
    pid_t pid = fork();
    if (!pid) {
        run(argument);
        _exit(0);
    }
    (check_ends_well)(pid);
}

int main(int count, char **arguments) {
    check(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    lenient = count > 2 && !strcmp(arguments[1], "--lenient");
    for (const struct test_case *const *entry = __start_cases; entry < __stop_cases; entry++) {
        if (count == 1)
            puts((*entry)->name);
        else if (!strcmp((*entry)->name, arguments[1 + lenient])) {
            (*entry)->run();
            if (accessible)
                printf("%zu unmapped pages are still accessible\n", accessible);
            return 0;
        }
    }
    return count > 1;
}
