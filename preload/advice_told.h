// What this process tells about the advice it gave: a file of the run's directory, which is there after a kill.
#pragma once

#include "abi.h"
#include "runtime.h"

// Always there: until a file is opened, and where none can be, it is told to nobody.
extern struct advice_told *advice_told;

// Where, by the environment, and NULL if advice was not asked for.
const char *advice_told_begin(void);

// Opens the process's own file, once; a child of a fork has one when it has something to tell.
void advice_told_open(void);
void advice_told_forget(void);

struct area;
void advice_tell(const struct area *area, struct advice_decision decision);

// What is huge and what is anonymous now.
void advice_sample(void);

// The same, unless the last sample was only just: how long until the next one is due, and 0 where it was taken.
uint64_t advice_sample_paced(void);

// Much memory is about to be given back: a sample where there is more than at any sample so far, else a paced one.
void advice_sample_before_less(void);

static inline void advice_count(uint64_t *counter, uint64_t more) {
    __atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}
