// A library that takes memory for itself.
#pragma once

#include <stddef.h>

// Blocks and a mapping, half of the bytes each; on a thread of the library's own, if there is to be one.
void greedy_take(size_t bytes, int on_a_thread);
// What is made for the caller is the library's too: its call obtained it.
void *greedy_make(size_t bytes);
// Sleeps.
void greedy_rest(size_t milliseconds);
