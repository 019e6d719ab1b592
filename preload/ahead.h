// The helper thread that goes ahead of the program: where a range is filled in order, what comes next is populated,
// with huge pages, before the program comes there.
#pragma once

#include "runtime.h"

enum huge_pages { HUGE_NEVER, HUGE_ADVISED, HUGE_ALWAYS };

// How the system gives huge pages; there is no way to have any: false. Nothing is done before.
bool ahead_begin(void);
extern enum huge_pages huge_pages;

// There is something new to look at.
void ahead_wake(void);

// Whether mappings of a size class have been filled in order until now, and none was not.
bool ahead_expects(uint32_t size_class);

// In the child of a fork.
void ahead_forget(void);
