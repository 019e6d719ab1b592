// A file of the run's directory in which a process tells about itself. It is mapped, so that it is there after a kill.
#pragma once

#include <stdint.h>

// NAME.HOST.PID.TICKS, and .1 …, for what exec makes of a process has one of its own; so many bytes of zeroes, readable
// and writable. NULL: it cannot be had.
void *told_file(const char *directory, const char *name, uint64_t bytes);
