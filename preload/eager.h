// The kernel's own memory, huge pages where they fit: what there is without a pool, or beside it. Up to a huge page is
// present at the moment of the request; what is larger comes at its first touch, for it may never be touched.
#pragma once

#include "runtime.h"

enum { HUGE = 2 << 20 };

// A new private anonymous mapping, aligned for huge pages; MAP_FAILED and errno.
void *eager_mmap(void *at, size_t bytes, int flags);

// Huge pages for memory that has just been obtained, and up to one of it present.
void eager_populate(uint64_t begin, uint64_t end);

// What a larger pool would have served, in units: begun, and given back.
void eager_demand(uint64_t begin, uint64_t end);
void eager_given_back(uint64_t begin, uint64_t end);
