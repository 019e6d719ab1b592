// Persistent requests: what is sent each time that one is started.
#pragma once

#include <stdint.h>

struct message {
    uint32_t to; // rank in the world + 1; 0: it is in another
    uint64_t bytes;
};

// O(1) each, for as many requests as there are lists. By the caller's lock one thread at a time.
void request_keep(uint64_t request, struct message message);
void request_forget(uint64_t request);

// NULL: it sends nothing that is known.
const struct message *request_message(uint64_t request);
