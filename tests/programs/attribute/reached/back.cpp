#include "reached.hpp"

#include <cstdlib>
#include <cstring>
#include <pthread.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
struct start {
    back_function *function;
    size_t bytes;
};

void *run(void *given) {
    const start *start = static_cast<struct start *>(given);
    start->function(start->bytes);
    return nullptr;
}

void *filled(size_t bytes) {
    return bytes ? memset(malloc(bytes), 1, bytes) : nullptr;
}
} // namespace

EXPORTED void *back_call(back_function *function, size_t bytes, size_t own) {
    function(bytes);
    return filled(own);
}

EXPORTED void *back_in_a_thread(back_function *function, size_t bytes, size_t own) {
    start start = {function, bytes};
    pthread_t thread;
    if (!pthread_create(&thread, nullptr, run, &start))
        pthread_join(thread, nullptr);
    return filled(own);
}

EXPORTED void *back_in_a_comparison(int (*compare)(const void *, const void *), size_t own) {
    int numbers[] = {2, 1};
    qsort(numbers, 2, sizeof *numbers, compare);
    return filled(own);
}
