// Programs of which it is known to whom their memory belongs: what their cases share.
//
// Run as PROGRAM CASE BYTES. Each truth is a line POINTER=BYTES: by how much the figure at that place of the JSON of
// `bursar attribute` is larger than after a run with 0 BYTES.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PAGE 4096UL

struct known {
    const char *name;
    void (*make)(size_t bytes);
};

// Does the case that was asked for.
int do_case(const struct known *cases, size_t count, int argc, char **argv);

// Of the only process, or of one rank.
void truth(const char *component, const char *line, size_t bytes);
void truth_of(int rank, const char *component, const char *line, size_t bytes);
// Of a figure that belongs to nobody.
void truth_at(const char *pointer, size_t bytes);

// Ends the program with a sentence about `what` and errno.
_Noreturn void fail(const char *what);
// Writes to every page.
void touch(void *start, size_t bytes);
// Long enough to be seen.
void hold(void);
