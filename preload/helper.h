// A thread of the runtime's own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Starts `run` on it; false if the kernel refuses. libc does not know of it: its heap and its standard streams stay
// those of a program with one thread, if it is one. So `run` may call nothing of libc that has a state, and may not
// touch `self`. It sleeps at a futex.
bool helper_start(void (*run)(void), uint32_t *futex);

// Where `run` can be left: if it is to leave it does not return.
void helper_leaves(void);

// Has all that this process has leave, and waits until they have; at most a second. They come back as new.
void helpers_leave(void);
void helpers_come_back(void);
