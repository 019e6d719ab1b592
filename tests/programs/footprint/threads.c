// Private memory touched by threads: one RSS, however many.
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "footprint.h"

struct part {
    pthread_t thread;
    char *start;
    size_t bytes;
    pthread_barrier_t *made, *done;
};

static void *touch_part(void *argument) {
    struct part *part = argument;
    touch(part->start, part->bytes);
    pthread_barrier_wait(part->made);
    pthread_barrier_wait(part->done);
    return NULL;
}

void make_threads(const struct options *options) {
    size_t count = options->count ? options->count : 1, each = options->bytes / count / PAGE * PAGE;
    char *memory = map_anonymous(options->bytes, MAP_PRIVATE);
    struct part *parts = map_anonymous((count * sizeof *parts + PAGE - 1) / PAGE * PAGE, MAP_PRIVATE);
    pthread_barrier_t made, done;
    pthread_barrier_init(&made, NULL, (unsigned)count + 1);
    pthread_barrier_init(&done, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++) {
        parts[i] = (struct part){.start = memory + i * each, .bytes = each, .made = &made, .done = &done};
        errno = pthread_create(&parts[i].thread, NULL, touch_part, &parts[i]);
        if (errno)
            fail("pthread_create");
    }
    pthread_barrier_wait(&made);
    truth_breakdown(each * count, 0, 0, 0);
    truth("app_max_rss_bytes", each * count);
    truth("tree_max_rss_bytes", each * count);
    hold(options);
    pthread_barrier_wait(&done);
    for (size_t i = 0; i < count; i++)
        pthread_join(parts[i].thread, NULL);
}
