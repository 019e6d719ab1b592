// Who sends how much to whom: point-to-point messages by rank in MPI_COMM_WORLD (the paper's Figure 4).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "calls.h"

// Whether messages are counted.
extern bool counting_messages;

// Whether calls of this name are to be looked at: those that send, and those after which a communicator's handle may
// mean another. C's only, for those of Fortran come down to them.
bool comm_looks_at(const char *name);

// Of the assembler, before such a call: its six arguments in registers, and those on the stack.
void comm_entering(const struct function *function, const uint64_t arguments[6], const uint64_t *stack);

// Logs what has been sent.
void comm_log(void);

// The process is a new one, and has sent nothing.
void comm_forget(void);
