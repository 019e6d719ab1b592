// What the process is, and where it stands in its job.
#pragma once

#include "runtime.h"

struct process {
    long pid;
    uint64_t parent, ticks; // of its start, since boot
    uint64_t namespace;     // in which `pid` and `parent` are its numbers; 0: not known
    uint32_t rank_plus_1;   // 0: none
    uint32_t ranks;         // 0: not known
    uint32_t local_rank;    // among those of this node
    const char *host, *executable;
    const char *boot; // what tells this boot of the machine from others; "": not known
};

extern struct process process;

// Finds all of it; false if there is no /proc, and nothing is known.
bool process_find(void);

// In the child of a fork: who it is now.
void process_forked(void);

// The number that a variable of the environment holds.
uint64_t number_of(const char *variable, uint64_t otherwise);

// mpirun and its kind start programs, also on other machines; what they hold is no part of the job.
bool process_is_launcher(void);

// `pthread_atfork`, which is no function of every libc.
void at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

// A sanitizer or valgrind keeps an account of its own of every byte, and takes ours for the program's.
bool process_is_instrumented(void);
