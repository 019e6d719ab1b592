// A thread of the runtime's own.
#pragma once

#include <stdbool.h>

// Starts `run` on it; false if the kernel refuses. libc does not know of it: its heap and its standard streams stay
// those of a program with one thread, if it is one. So `run` may call nothing of libc that has a state, and may not
// touch `self`.
bool helper_start(void (*run)(void));
