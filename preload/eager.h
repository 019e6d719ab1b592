// The kernel's own memory, present at the moment of the request: huge pages where they fit. What there is without a
// pool, or beside it.
#pragma once

#include "runtime.h"

enum { HUGE = 2 << 20 };

// A new private anonymous mapping, aligned for huge pages, populated as far as memory allows; MAP_FAILED and errno.
void *eager_mmap(void *at, size_t bytes, int flags);

// Makes memory present that has just been obtained.
void eager_populate(uint64_t begin, uint64_t end);

// What a larger pool would have served, in units: begun, and given back.
void eager_demand(uint64_t begin, uint64_t end);
void eager_given_back(uint64_t begin, uint64_t end);
