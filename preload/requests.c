#include "requests.h"

#include <stddef.h>

#include "arena.h"

enum { LISTS = 1 << 12 };

struct prepared {
    uint64_t request;
    struct message message;
    struct prepared *next;
};

static struct prepared *lists[LISTS], *unused;

// Where what leads to it stands; where the next would, if there is none.
static struct prepared **place_of(uint64_t request) {
    struct prepared **place = &lists[request * 0x9E3779B97F4A7C15UL >> 52];
    while (*place && (*place)->request != request)
        place = &(*place)->next;
    return place;
}

void request_keep(uint64_t request, struct message message) {
    request_forget(request);
    struct prepared **place = place_of(request);
    struct prepared *made = unused ? unused : arena(sizeof *made);
    if (!made)
        return;
    if (made == unused)
        unused = made->next;
    *made = (struct prepared){request, message, NULL};
    *place = made;
}

void request_forget(uint64_t request) {
    struct prepared **place = place_of(request), *gone = *place;
    if (!gone)
        return;
    *place = gone->next;
    gone->next = unused;
    unused = gone;
}

const struct message *request_message(uint64_t request) {
    const struct prepared *found = *place_of(request);
    return found ? &found->message : NULL;
}
