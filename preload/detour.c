#include "detour.h"

#include "log.h"
#include "objects.h"
#include "patch.h"

void detours_patch(struct detour *detours, size_t count) {
    for (struct detour *detour = detours; detour < detours + count; detour++) {
        if (detour->entry && patched(detour->entry))
            continue;
        detour->entry = next_symbol(detour->name);
        const char *why = detour->entry ? patch(detour->entry, detour->target, detour->next) : "libc does not have it";
        if (why)
            log_note("calls of %s are not seen: %s", detour->name, why);
    }
}
