// Functions of libc that the runtime comes before.
#pragma once

#include <stddef.h>

enum definer {
    FIRST,        // whichever library comes first with it
    FIRST_IF_ANY, // the same, and older libcs do not have it
    LIBC_BEHIND   // libc itself, where another library comes before it: libc's own calls do not go by that
};

struct detour {
    const char *name;
    void *target, **next; // `*next`: the function as it was
    void *entry;          // NULL: it was never patched
    enum definer definer;
};

// Between `patch_begin` and `patch_done`: all that are not patched, or no longer; where one cannot be, the log says
// why.
void detours_patch(struct detour *detours, size_t count);
