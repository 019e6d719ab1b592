// A library beside the application's own memory.
#include <pthread.h>
#include <stdlib.h>

#include "greedy.h"
#include "plain.h"

void make_greedy(size_t bytes) {
    void *own = malloc(bytes / 4);
    touch(own, bytes / 4);
    greedy_take(bytes / 4, 0);
    greedy_take(bytes / 4, 1);
    touch(greedy_make(bytes / 4), bytes / 4);
    truth("application", "heap", bytes / 4);
    truth("greedy", "heap", bytes / 2);
    truth("greedy", "mapped", bytes / 4);
    hold();
}

static void *rest(void *milliseconds) {
    for (int i = 0; i < 2; i++)
        greedy_rest(*(size_t *)milliseconds);
    return NULL;
}

void make_resting(size_t milliseconds) {
    pthread_t thread;
    pthread_create(&thread, NULL, rest, &milliseconds);
    rest(&milliseconds);
    pthread_join(thread, NULL);
}
