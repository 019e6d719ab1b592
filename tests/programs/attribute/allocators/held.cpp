// held WAY BYTES: holds so many bytes, in blocks of 1 MiB that are obtained in one way; every second is given back and
// obtained again.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <string>
#include <unistd.h>

struct way {
    const char *name;
    void *(*get)(size_t);
    void (*give)(void *);
};

static const std::align_val_t aligned{64};

static const way ways[] = {
    {"malloc", malloc, free},
    {"calloc", [](size_t n) { return calloc(1, n); }, free},
    {"realloc", [](size_t n) { return realloc(malloc(n / 2), n); }, free},
    {"memalign", [](size_t n) { return memalign(256, n); }, free},
    {"aligned_alloc", [](size_t n) { return aligned_alloc(64, n); }, free},
    {"posix_memalign",
     [](size_t n) {
         void *p;
         return posix_memalign(&p, 4096, n) ? nullptr : p;
     },
     free},
    {"new", [](size_t n) { return operator new(n); }, [](void *p) { operator delete(p); }},
    {"new[]", [](size_t n) { return operator new[](n); }, [](void *p) { operator delete[](p, size_t(1) << 20); }},
    {"nothrow", [](size_t n) { return operator new(n, std::nothrow); }, [](void *p) { operator delete(p, std::nothrow); }},
    {"aligned", [](size_t n) { return operator new(n, aligned); }, [](void *p) { operator delete(p, aligned); }},
};

int main(int count, char **arguments) {
    if (count < 3)
        return 2;
    const size_t block = 1 << 20;
    size_t blocks = strtoul(arguments[2], nullptr, 10) / block;
    void **held = static_cast<void **>(calloc(blocks + 1, sizeof *held));
    for (const way &way : ways) {
        if (strcmp(way.name, arguments[1]))
            continue;
        for (size_t i = 0; i < blocks; i++)
            memset(held[i] = way.get(block), 1, block);
        for (size_t i = 0; i < blocks; i += 2) {
            way.give(held[i]);
            memset(held[i] = way.get(block), 2, block);
        }
    }
    usleep(300000);
    printf("/components/application/heap=%zu\n", blocks * block);
    return 0;
}
