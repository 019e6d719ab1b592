// What this process tells about what it was given: one page of the run's directory, which is there after a kill.
#pragma once

#include "abi.h"
#include "runtime.h"

// Always there: until a file is opened, and where none can be, it is told to nobody.
extern struct provision_told *told;

// Where, by the environment; false: provisioning was not asked for.
bool told_begin(void);

// Opens the process's own file. The child of a fork has none until it obtains something.
void told_open(void);
void told_forget(void);

// Memory that did not come from the pool.
void told_passed(enum passed reason, uint64_t bytes);

// Whole pages of the pool that are mapped, or were unmapped; and what a larger pool would have served beside them.
void told_pool(int64_t bytes);
void told_demand(int64_t bytes);
