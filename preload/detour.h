// Functions of libc that the runtime comes before.
#pragma once

#include <stddef.h>

struct detour {
    const char *name;
    void *target, **next; // `*next`: the function as it was
};

// For good, between `patch_begin` and `patch_done`; where one cannot be, the log says why.
void detours_patch(const struct detour *detours, size_t count);
