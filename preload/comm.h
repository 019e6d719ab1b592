// Who sends how much to whom: point-to-point messages by rank in MPI_COMM_WORLD (the paper's Figure 4).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "calls.h"

// Whether messages are counted.
extern bool counting_messages;

enum comm_look { COMM_NOT, COMM_BEFORE, COMM_AFTER };

// Whether calls of this name are to be looked at: those that send or start to, those that prepare it (when they have
// made a request), and those after which the handle of a communicator or a request may mean another. C's only, for
// those of Fortran come down to them.
enum comm_look comm_looks_at(const char *name);

// Of the assembler, before such a call: its six arguments in registers, and those on the stack.
void comm_entering(const struct function *function, const uint64_t arguments[6], const uint64_t *stack);

// Of the assembler, after a call that prepares a message: these, and what it has returned.
void comm_prepared(const struct function *function, const uint64_t arguments[6], const uint64_t *stack, int error);

// Logs what has been sent.
void comm_log(void);

// The process is a new one, and has sent nothing.
void comm_forget(void);
