// Threads: that use much of their stacks, or outlive the first.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "plain.h"

enum { THREADS = 4 };

static pthread_barrier_t used;
static size_t each;

static void *use(void *unused) {
    char *deep = __builtin_alloca(each + 1);
    touch(deep, each);
    pthread_barrier_wait(&used);
    // Twice as long: stacks are seen by the timer alone, which looks less often where a look has taken long.
    hold();
    hold();
    // The stack is in use until here.
    deep[0] = 1;
    return unused;
}

void make_stacks(size_t bytes) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    each = bytes / THREADS / PAGE * PAGE;
    pthread_barrier_init(&used, NULL, THREADS);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, each + (1 << 20));
    for (int i = 0; i < THREADS; i++)
        if ((errno = pthread_create(&threads[i], &attributes, use, NULL)))
            fail("pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    truth("application", "stacks", each * THREADS);
}

static void *outlive_the_first(void *first) {
    pthread_join(*(pthread_t *)first, NULL);
    char *block = each ? malloc(each) : NULL;
    touch(block, each);
    truth("application", "heap", each);
    hold();
    free(block);
    exit(0);
}

void make_first_thread_ends(size_t bytes) {
    static pthread_t first;
    pthread_t thread;
    each = bytes;
    first = pthread_self();
    if ((errno = pthread_create(&thread, NULL, outlive_the_first, &first)))
        fail("pthread_create");
    pthread_exit(NULL);
}
