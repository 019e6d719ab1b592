// A thread of the runtime's own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Starts `run` on it; false if the kernel refuses. libc does not know of it: its heap and its standard streams stay
// those of a program with one thread, if it is one. So `run` may call nothing of libc that has a state, and may not
// touch `self`. It sleeps at a futex, and each time it wakes it does what it is asked to.
bool helper_start(void (*run)(void), uint32_t *futex);
void helper_asked(void);

// Has each thread of the runtime that this process has do something once, and waits for that; at most a second.
void helpers_do(void (*work)(void));
