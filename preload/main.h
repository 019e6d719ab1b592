// The runtime's life in a process: it begins before the program does, follows it through fork, and ends with it.
#pragma once

#include <stdbool.h>

// What was asked for: who holds the memory; to give it from a pool, or at once.
extern bool attributing, provisioning;

// A detour of libc's function that ends a process.
extern void (*next_exit_now)(int);
void on_exit_now(int status);

// The library will be able to do nothing more.
void tell_of_sandbox(void);

// MPI comes to its end, and with it the last way to other nodes.
void on_finalize(void);
