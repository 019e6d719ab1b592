// The parts of the program's objects that are memory of its own: .data and .bss, by the object's build-id.
#pragma once

#include "abi.h"
#include "runtime.h"

enum { BUILD_ID = 64 };

// Of the executable, in hex; "-": it has none.
void parts_build_id(char id[BUILD_ID + 1]);

// Calls `each` for the data and the bss of every object that is loaded; `object` is NAME:BUILD-ID, or - for the
// executable.
void parts_each(void (*each)(enum advice_kind kind, const char *object, uint64_t begin, uint64_t end));
