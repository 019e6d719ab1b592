// Processes that fork, become another program, or end in a bad way.
#include <stdio.h>
#include <stdlib.h>
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

// A child with memory of its own beside what it has from its parent, which by PSS counts once, and one that becomes
// another program.
void make_child(size_t bytes) {
    touch(malloc(bytes / 2), bytes / 2);
    if (fork() == 0) {
        blocks(bytes / 2);
        hold();
        _exit(0);
    }
    if (fork() == 0)
        become("exec", 0);
    while (wait(NULL) > 0)
        continue;
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

void make_abort(size_t bytes) {
    blocks(bytes);
    truth("application", "heap", bytes);
    hold();
    abort();
}
