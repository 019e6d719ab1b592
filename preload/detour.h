// Functions of libc that the runtime comes before.
#pragma once

#include <stddef.h>

struct detour {
    const char *name;
    void *target, **next; // `*next`: the function as it was
    void *entry;          // NULL: it was never patched
};

// Between `patch_begin` and `patch_done`: all that are not patched, or no longer; where one cannot be, the log says
// why.
void detours_patch(struct detour *detours, size_t count);
