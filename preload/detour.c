#include "detour.h"

#include "log.h"
#include "objects.h"
#include "patch.h"

void detours_patch(const struct detour *detours, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void *entry = next_symbol(detours[i].name);
        const char *why = entry ? patch(entry, detours[i].target, detours[i].next) : "libc does not have it";
        if (why)
            log_note("calls of %s are not seen: %s", detours[i].name, why);
    }
}
