// Many short processes, one after the other: sampling misses them, the kernel does not.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "footprint.h"

void make_spawn(const struct options *options) {
    for (unsigned i = 0; i < options->count; i++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            touch(map_anonymous(options->bytes, MAP_PRIVATE), options->bytes);
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            fail("a child failed");
    }
    truth_breakdown(options->bytes, 0, 0, 0);
    truth("app_max_rss_bytes", options->bytes);
    truth("processes", options->count + 1);
    hold(options);
}
