// How much memory there still is for this process: of the machine, and of the cgroups it is in.
#pragma once

#include "runtime.h"

// What is read goes there: stacks of threads may be small. Of one thread at a time.
struct room_text {
    char groups[4096], path[4400], file[4400], text[2048];
};

// Bytes; 0: that cannot be told.
uint64_t room_now(struct room_text *text);

// The number behind a name in a text; UINT64_MAX: there is none.
uint64_t room_number(const char *text, const char *name);
