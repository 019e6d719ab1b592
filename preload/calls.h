// Library calls: the second chain. Every entry of a component's libraries is patched so that it says who is inside
// what.
#pragma once

#include "lock.h"
#include "runtime.h"

// An entry of a library. A function of the program's that a library calls back is one too, of the application: it has
// no name, and is not told. The assembler of `calls.S` knows the offsets up to `flags`, and the size.
struct function {
    const char *name;
    void *moved;        // 8: the entry's own instructions, then the rest of the function
    uint16_t component; // 16
    uint16_t number;    // 18: its index
    uint16_t flags;     // 20
    uint64_t got, gave; // bytes, in all calls; as last summed
    uint64_t calls;     // as last summed
    uint64_t ticks;     // of the processor's clock, between entering and leaving; as last summed
    uint64_t told;      // of the four, the sum that was logged
    uint64_t news;      // what the sum has grown by since
    uint32_t object;
    void *thunk; // of what is called back: what the library is given instead
};

// The first numbers are those of functions each of which has its own code in `calls.S`: of those whose arguments are
// all in registers, and then of those that have up to two on the stack.
enum { QUICK_BY_STACK = 128, QUICK = 256 };

enum {
    CALL_INIT = 1, // MPI_Init, MPI_Init_thread, MPI_Session_init and theirs of Fortran: `entering` and `left` reconcile
    CALL_FINALIZE = 2,   // MPI_Finalize, MPI_Session_finalize
    CALL_PCONTROL = 4,   // a phase begins
    CALL_BY_ADDRESS = 8, // its arguments are: Fortran
    CALL_CALLBACK = 256  // times 1 << n: the argument n is a function of the program's
};

extern struct function functions[FUNCTIONS]; // 1 up; 0 is nobody
extern uint32_t function_count;              // with nobody

extern bool calls_timed;   // whether ticks are counted
extern bool calls_quickly; // whether any have, for there neither ticks nor faults are told apart

// Of a thread's counters, what is behind the calls.
enum { TICKS = FUNCTIONS, GOT = 2 * FUNCTIONS, GAVE = 3 * FUNCTIONS };

// Memory that changes hands inside a component's call. A signal's handler may come before a thread has counters.
static inline void calls_obtained(struct thread *thread, uint64_t bytes) {
    if (thread->function && thread->calls)
        thread->calls[GOT + thread->function] += bytes;
}

static inline void calls_gave(struct thread *thread, uint64_t bytes) {
    if (thread->function && thread->calls)
        thread->calls[GAVE + thread->function] += bytes;
}

// Finds what is loaded, and whatever will be.
void calls_begin(void);

// Logs the functions that have been called and have not been logged, and the counts that have changed.
void calls_log(void);

// The process is a new one, with a log of its own: it has called nothing yet.
void calls_forget(void);

// Of `calls_log`: held while a process forks.
