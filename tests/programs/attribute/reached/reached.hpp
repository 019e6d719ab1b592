// What the program and the two libraries have in common.
#pragma once

#include <cstddef>

// A plug-in: nothing of it but the function that makes it can be found by name.
struct plug {
    virtual void *block(size_t bytes) = 0;    // of malloc
    virtual void *copy(const char *text) = 0; // of libc's strdup
    virtual void *text(size_t bytes) = 0;     // within the C++ library
    virtual void *array(size_t bytes) = 0;    // of operator new
    virtual void *mapping(size_t bytes) = 0;  // of mmap
    virtual void give_back(void *block) = 0;
};

// libplug.so
extern "C" plug *plug_make();

// libback.so: calls a function back, from where its name says; afterwards it obtains `own` bytes itself.
typedef void back_function(size_t bytes);
extern "C" void *back_call(back_function *function, size_t bytes, size_t own);
extern "C" void *back_in_a_thread(back_function *function, size_t bytes, size_t own);
extern "C" void *back_in_a_comparison(int (*compare)(const void *, const void *), size_t own);
