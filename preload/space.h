// Addresses that nobody has yet.
#pragma once

#include "runtime.h"

// Where the runtime's own memory is mapped: below the libraries, and far from where the kernel puts what a program
// maps, so that a hole which a program makes, to map something there next, stays empty. 0: anywhere.
uint64_t own_place(uint64_t bytes);

// Reserved, at a multiple of something; 0: none.
uint64_t space(uint64_t bytes, uint64_t multiple);

// Private anonymous memory of a protection, just there; false: something is there already.
bool space_at(uint64_t at, uint64_t bytes, int protection);

// Whether anything is mapped at an address.
bool is_mapped(uint64_t address);
