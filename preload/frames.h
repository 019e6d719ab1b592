// The callers of a place in the code, by the tables that compilers leave for exceptions (.eh_frame). No lock, no
// memory; of x86-64 alone. What has been read is kept, so that a frame costs some ns.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct frame {
    uint64_t pc;      // where it goes on
    uint64_t sp, rbp; // with these
};

#if defined(__x86_64__)
// The frame of whoever says it.
#define FRAME_HERE()                                                                                                   \
    ({                                                                                                                 \
        struct frame here;                                                                                             \
        __asm__ volatile("leaq (%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"                                        \
                         : "=&r"(here.pc), "=&r"(here.sp), "=&r"(here.rbp));                                           \
        here;                                                                                                          \
    })
#else
#define FRAME_HERE() ((struct frame){0})
#endif

// Goes on to the caller's; false: it is not known, or there is none.
bool frame_up(struct frame *frame);

// An object has been unloaded: another may come to its place.
void frames_forget(void);
