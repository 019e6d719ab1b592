// Free units are zeroed by who started the program, on a processor that is idle: then they are zero when they are
// needed next. A process of its own does it, for to unmap memory interrupts all processors that run threads of the
// process, a helper's, too. Of one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Where it is, by the environment; before the program may change it.
void prezero_begin(void);

// Asks for it, once; true: from now on, units can be offered.
bool prezero_start(void);

// A segment that units can be offered of.
void prezero_add(uint32_t segment);

// A unit is free, and not zero; false: nobody zeroes it.
bool prezero_offer(uint32_t unit);

// What has become of a unit that was offered. While it is being zeroed it must not be touched.
enum prezeroed { PREZERO_OFFERED, PREZERO_BUSY, PREZERO_DONE };
enum prezeroed prezero_look(uint32_t unit);

// It is ours again; false: it is being zeroed.
bool prezero_withdraw(uint32_t unit);

// Whether there is still somebody who may come to an end with what is being zeroed.
bool prezero_lives(void);

// In the child of a fork: it is the parent's.
void prezero_forget(void);
