// What the parts of the runtime share: who is inside what, and the words for it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum {
    PAGE = 4096,
    COMPONENTS = 16,    // application, mpi, and those named
    OBJECTS = 4095,     // shared objects that are told apart; what comes later is "others"
    FUNCTIONS = 1 << 16 // entries of components' libraries
};

static inline uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// To the next multiple of a power of two.
static inline uint64_t up(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) & -multiple;
}

// Component 0. Whatever is not inside a component's call is the application's.
enum { APPLICATION = 0, MPI = 1 };

// What a thread is doing. Written by the thread itself alone; the assembler of `calls.S` knows the offsets.
struct thread {
    uint16_t inside;   // 0: the component whose call it is in
    uint16_t function; // that call's; 0: none that is told
    uint32_t zero;     // the three are written as one
    uint64_t frame;    // 8: the stack pointer when it entered; above it, the call was left by longjmp or an exception
    uint64_t *calls;   // 16: per function, how often it was entered from outside its component, and more behind that
    uint64_t *faults;  // 24: how far the kernel has come in telling the thread's page faults; NULL: it does not
    uint64_t faults_seen;    // 32: how far they have been settled
    uint64_t stack;          // 40: a page of the stack above, found to be readable
    int64_t net[COMPONENTS]; // heap bytes obtained less given back, not yet added to the totals
    uint64_t caller;         // who called the operator that called malloc
    uint32_t ring;           // of its page faults, 1 up; 0: none
    bool asking;             // the allocator is asked for a size, and may call itself for that (tcmalloc)
};

extern __thread struct thread self __attribute__((tls_model("initial-exec"), visibility("hidden")));
