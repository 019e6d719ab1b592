#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "greedy.h"

static void *take(void *argument) {
    size_t bytes = *(size_t *)argument / 2;
    for (size_t taken = 0; taken < bytes; taken += 8192)
        memset(malloc(8192 - 16), 1, 8192 - 16);
    if (bytes)
        memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, bytes);
    return NULL;
}

void greedy_take(size_t bytes, int on_a_thread) {
    pthread_t thread;
    if (!on_a_thread)
        take(&bytes);
    else if (pthread_create(&thread, NULL, take, &bytes) == 0)
        pthread_join(thread, NULL);
}

void *greedy_make(size_t bytes) {
    return malloc(bytes);
}

void greedy_rest(size_t milliseconds) {
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}
