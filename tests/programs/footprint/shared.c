// Shared memory without a file that anybody sees: charged once, resident in every process that touched it.
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "footprint.h"

static void touch_too(const struct options *options, void *memory) {
    touch(memory, options->bytes);
}

static void share(const struct options *options, void *memory) {
    touch(memory, options->bytes);
    start_children(options, touch_too, memory);
    truth_breakdown(0, 0, options->bytes, 0);
    truth("app_max_rss_bytes", options->bytes);
    truth("tree_max_rss_bytes", options->bytes * (options->count + 1));
    truth("tree_max_pss_bytes", options->bytes);
    hold(options);
    release_children();
}

void make_shared(const struct options *options) {
    share(options, map_anonymous(options->bytes, MAP_SHARED));
}

void make_sysv(const struct options *options) {
    int id = shmget(IPC_PRIVATE, options->bytes, IPC_CREAT | 0600);
    if (id < 0)
        fail("shmget");
    void *memory = shmat(id, NULL, 0);
    // Marked at once, so that it is gone with the last process even after SIGKILL.
    if (shmctl(id, IPC_RMID, NULL) || memory == (void *)-1)
        fail("shmat");
    share(options, memory);
}
