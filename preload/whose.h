// Whose code asks for memory.
#pragma once

#include "runtime.h"

struct whose {
    uint32_t component, object;
};

// A thread is inside the component whose library's entry it has come through. But the code that asks may be another's:
// the program's, which a component calls back (a region of OpenMP, a handler of events, a comparison), or a
// component's, which is called by its address (tables of plug-ins, virtual methods, Python's methods). The nearest
// caller decides that is neither libc nor its kind, nor a library that serves the component. `caller`: the address that
// asks; `stack`: where its frame is.
struct whose whose(struct thread *thread, uint64_t caller, uint64_t stack);

// Whether whoever asks from this object's code outside of all components is always the same.
bool asks_for_itself(uint32_t object);
