// What of the program's memory is there when it gives it back, when it ends, and from time to time: for a profile.
// Text, in a file for each process, see abi.h.
#pragma once

#include <stdint.h>

// From now on it is told in the run's directory about what is among the areas.
void presence_begin(const char *directory);

// What is between these two is about to be given back, or its process to end.
void presence_tell(uint64_t begin, uint64_t end);

// All of it, unless it is that of a child of a fork that calls exec at once: its memory is its parent's.
void presence_tell_before_exec(void);

// In the child of a fork, which has a file of its own.
void presence_forget(void);
