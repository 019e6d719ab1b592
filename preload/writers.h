// Other threads' writes to a piece of memory, held up while it is exchanged for another.
#pragma once

#include <stdint.h>

// From now on who writes to whole huge pages waits; who reads does not. -1: the kernel cannot hold them up
// (before 5.19, or where a container refuses userfaultfd), or the caller would wait for itself, since its stack is
// there.
int writers_hold(uint64_t begin, uint64_t bytes);

// They go on, with what is mapped there then.
void writers_go_on(int held);
