// The log of one process: what changed, appended as it changes, readable after a kill at any point. Its format is
// abi.h's.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

// Opens a new log in the run directory, NAME.log or NAME.1.log …; false if that cannot be done, and nothing will be
// logged.
bool log_open(const char *directory, const char *name);

// The log is another process's, this one having been forked; what is logged goes nowhere until the next is opened.
void log_forget(void);

// One entry is made of pieces and then appended whole; of one thread at a time.
void log_begin(enum log_entry kind);
void log_number(uint64_t value);
void log_string(const char *text);
void log_reason(enum log_reason reason);
void log_time(void);
void log_end(void);

// A note, formatted as `text_format` does.
void log_note(const char *format, ...);

// Whether what is logged goes somewhere.
bool log_is_open(void);

// Where it is, and how long.
const char *log_path(void);
uint64_t log_bytes(void);

// The log may grow to so many bytes; then one note is the last.
void log_limit(uint64_t bytes);
