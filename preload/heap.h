// The heap: malloc and its kin, interposed by their names.
#pragma once

#include "runtime.h"

// Finds the functions that are called in their stead, of the executable's own too, and the object that maps for them.
void heap_begin(void);

// Calls pass through and are not noted: there is nobody to tell.
void heap_off(void);

// Nobody asks: calls that come here by name go on at once to whom they were meant for, by a jump.
void heap_leave(void);

// Objects have come or gone: who asks for whom may be another.
void heap_objects_changed(void);

// Whether an object calls the allocator by names that are not followed; noted once.
void heap_look_at(uint32_t id);

// Whether blocks are noted. If not, nothing is known of memory that the allocator has mapped: it may be in use.
bool heap_is_divided(void);

// The object whose mappings are the allocator's own; 0 before it is known.
uint32_t allocator_object(void);

// Bytes of live blocks and mappings, by component; what threads have not yet added is up to 256 KiB each.
extern int64_t live[COMPONENTS];

// Notes what is about to be given back: when there has never been as much as now, all is looked at first, for
// afterwards it cannot be.
void before_shrinking(void);

// As `live` changes by what is not the heap's.
void live_add(uint32_t component, int64_t bytes);
