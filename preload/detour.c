#include "detour.h"

#include "log.h"
#include "patch.h"
#include "symbols.h"

static void *entry_of(const struct detour *detour) {
    void *first = next_symbol(detour->name);
    if (detour->definer != LIBC_BEHIND)
        return first;
    const struct link_map *libc = next_definer("gnu_get_libc_version");
    void *of_libc = libc ? object_symbol(libc, detour->name) : NULL;
    return of_libc == first ? NULL : of_libc;
}

void detours_patch(struct detour *detours, size_t count) {
    for (struct detour *detour = detours; detour < detours + count; detour++) {
        if (detour->entry && patched(detour->entry))
            continue;
        detour->entry = entry_of(detour);
        if (!detour->entry && detour->definer != FIRST)
            continue;
        const char *why = detour->entry ? patch(detour->entry, detour->target, detour->next) : "libc does not have it";
        if (why)
            log_note("calls of %s are not seen: %s", detour->name, why);
    }
}
