// What a program has before it begins: memory that the kernel gave by exec.
#pragma once

#include <stdint.h>

// Its .bss, where that is large, becomes the pool's, or is populated; of its stack, what most never leave.
void image_serve(void);

// The same of a thread's that is being made.
void image_thread_stack(uint64_t begin, uint64_t end);
