// Memory that comes and goes while another thread looks at all there is, one look after the other.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../../preload/bursar.h"
#include "plain.h"

enum { SECONDS = 1 };

static size_t each;
static void (*pass)(void);
static bool over;

static void *look(void *unused) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        BURSAR_MARK("look");
    return unused;
}

static void *repeat(void *unused) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        pass();
    return unused;
}

static void start(pthread_t *thread, void *(*routine)(void *)) {
    if ((errno = pthread_create(thread, NULL, routine, NULL)))
        fail("pthread_create");
}

// On so many threads.
static void make(void (*made)(void), size_t bytes, int count) {
    pthread_t threads[3];
    pass = made;
    each = bytes;
    start(&threads[0], look);
    for (int i = 1; i <= count; i++)
        start(&threads[i], repeat);
    sleep(SECONDS);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i <= count; i++)
        pthread_join(threads[i], NULL);
}

static void block(void) {
    char *block = malloc(each);
    touch(block, each);
    free(block);
}

static void mapping(void) {
    char *memory = mmap(NULL, each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    touch(memory, each);
    munmap(memory, each);
}

static void library(void) {
    void *library = dlopen("liblarge.so", RTLD_NOW);
    const volatile char *large = library ? dlsym(library, "large") : NULL;
    if (!large)
        fail("liblarge.so");
    for (size_t i = 0; i < each; i += PAGE)
        (void)large[i];
    dlclose(library);
}

void make_passing_block(size_t bytes) {
    make(block, bytes, 1);
}

// One of two is mapped while the other is unmapped.
void make_passing_mappings(size_t bytes) {
    make(mapping, bytes, 2);
}

void make_passing_library(size_t bytes) {
    make(library, bytes, 1);
}
