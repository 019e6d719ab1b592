// Processes that fork, become another program, or end in a bad way.
#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plain.h"

static void *blocks(size_t bytes) {
    void *memory = malloc(bytes);
    touch(memory, bytes);
    return memory;
}

static void become(const char *name, size_t bytes) {
    char number[32];
    snprintf(number, sizeof number, "%zu", bytes);
    execl("/proc/self/exe", "plain", name, number, (char *)NULL);
    fail("exec");
}

static void fork_blocks(size_t bytes) {
    if (fork() == 0) {
        blocks(bytes);
        hold();
        _exit(0);
    }
}

// A child with memory of its own beside what it has from its parent, which by PSS counts once, and one that becomes
// another program.
void make_child(size_t bytes) {
    touch(malloc(bytes / 2), bytes / 2);
    fork_blocks(bytes / 2);
    if (fork() == 0)
        become("exec", 0);
    while (wait(NULL) > 0)
        continue;
    truth_at("/components/application/peak_bytes", bytes);
}

// What a thread may do, in the words of the kernel.
static void credentials(const char *thread, char *words, size_t bytes) {
    char path[300], line[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *status = fopen(path, "r");
    if (!status)
        fail(path);
    *words = 0;
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "Uid:", 4) || !strncmp(line, "Gid:", 4) || !strncmp(line, "Groups:", 7) ||
            !strncmp(line, "CapPrm:", 7) || !strncmp(line, "CapEff:", 7))
            strncat(words, line, bytes - strlen(words) - 1);
    fclose(status);
}

// No thread may do more, whoever started it.
static void check_threads(void) {
    char own[1000], others[1000], self[32];
    snprintf(self, sizeof self, "%d", (int)getpid());
    credentials(self, own, sizeof own);
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *thread; (thread = readdir(threads));) {
        if (*thread->d_name == '.')
            continue;
        credentials(thread->d_name, others, sizeof others);
        if (strcmp(own, others)) {
            fprintf(stderr, "thread %s:\n%sand the first:\n%s", thread->d_name, others, own);
            _exit(3);
        }
    }
    closedir(threads);
}

// Root lets others do for a while, then for good, as a daemon does; and its children are seen, too.
void make_dropped(size_t bytes) {
    const gid_t nobody = 65534;
    blocks(bytes / 2);
    check_threads();
    if (seteuid(nobody) || seteuid(0) || setgroups(1, &nobody) || setgid(nobody))
        fail("setgid");
    // What vfork made drops for itself alone.
    if (vfork() == 0)
        _exit(setuid(nobody) ? 1 : 0);
    wait(NULL);
    if (setuid(nobody))
        fail("setuid");
    check_threads();
    blocks(bytes / 4);
    fork_blocks(bytes / 4);
    wait(NULL);
    check_threads();
    truth_at("/components/application/peak_bytes", bytes);
}

// What was there before the exec is gone with it.
void make_exec(size_t bytes) {
    if (bytes) {
        blocks(bytes);
        hold();
        truth("application", "peak_bytes", bytes);
        become("exec", 0);
    }
    hold();
}

// A child that is gone before it is looked at, of a parent that is not looked at again.
void make_fork_killed(size_t bytes) {
    usleep(100 * 1000);
    blocks(bytes);
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    truth_at("/components/application/peak_bytes", bytes);
    raise(SIGKILL);
}

// It grows and is killed, or aborts, before it is looked at again.
static void grow_after_a_look(size_t bytes) {
    usleep(100 * 1000);
    blocks(bytes);
    truth_at("/total_peak_bytes", bytes);
    truth_at("/unattributed_peak_bytes", bytes);
}

void make_grow_killed(size_t bytes) {
    grow_after_a_look(bytes);
    raise(SIGKILL);
}

void make_grow_abort(size_t bytes) {
    grow_after_a_look(bytes);
    abort();
}

// It grows for seconds: the larger it is, the less often it is looked at.
void make_grow_long_killed(size_t bytes) {
    const size_t step = 4 << 20;
    for (size_t grown = 0; grown < bytes; grown += step) {
        blocks(step);
        usleep(20 * 1000);
    }
    raise(SIGKILL);
}

// A child that is killed at its peak long before its parent grows.
void make_child_killed(size_t bytes) {
    if (fork() == 0) {
        hold();
        blocks(bytes);
        raise(SIGKILL);
    }
    wait(NULL);
    blocks(bytes);
    hold();
    truth_at("/total_peak_bytes", bytes);
}

void make_abort(size_t bytes) {
    blocks(bytes);
    truth("application", "heap", bytes);
    hold();
    abort();
}
