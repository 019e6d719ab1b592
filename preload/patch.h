// Code that is put in front of a function's own, in place: so every call is seen, by whatever way it comes (PLT,
// pointer, dlsym, -fno-plt, within the library itself). Nothing is patched whose bytes are not known. x86-64.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"

// All patching is done between these two. What is patched takes effect at the end, or before; NULL, or why it could
// not.
void patch_begin(void);
const char *patch_done(void);

// Makes `entry` jump to `target`. The first instructions are moved to where `*moved` then points: calling that is
// calling the function as it was. NULL if patched; else why not, as words ("a return within five bytes").
//
// May be called again for an entry that somebody else has patched since: both are then run, ours first.
const char *patch(void *entry, void *target, void **moved);

// The same, with a pointer in r11 when `target` is reached, and with the whole function, of so many bytes, looked at.
const char *patch_with(void *entry, size_t bytes, void *target, void *r11, void **moved);

// Whether the entry is still as `patch` left it.
bool patched(const void *entry);

// As many new functions as THUNKS, one behind another, that jump to `target` with a pointer in r11, each with one that
// is so many bytes further; NULL: none.
enum { THUNKS = 128, THUNK = 32 };
void *patch_thunks(void *target, void *r11, size_t stride);
