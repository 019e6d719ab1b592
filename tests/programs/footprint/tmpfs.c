// A file in /dev/shm, written and not mapped: in no process's RSS, and not reclaimable without swap.
#include <fcntl.h>
#include <unistd.h>

#include "footprint.h"

void make_tmpfs(const struct options *options) {
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    if (fd < 0)
        fail("/dev/shm");
    write_file(fd, options->bytes);
    truth_breakdown(0, 0, options->bytes, 0);
    truth("app_max_rss_bytes", 0);
    truth("floor_bytes", options->bytes);
    hold(options);
    close(fd);
}
