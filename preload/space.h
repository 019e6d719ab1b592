// Addresses that nobody has yet.
#pragma once

#include "runtime.h"

// Reserved, at a multiple of something; 0: none.
uint64_t space(uint64_t bytes, uint64_t multiple);

// Private anonymous memory of a protection, just there; false: something is there already.
bool space_at(uint64_t at, uint64_t bytes, int protection);

// Whether anything is mapped at an address.
bool is_mapped(uint64_t address);
