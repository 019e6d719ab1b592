// Page cache, by its three ways in: mapping, read(), write(). --path names a file that exists, to be read cold;
// without it the program writes the file first, which leaves the same pages.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "footprint.h"

static int input(const struct options *options) {
    int fd = open_file(options, O_RDONLY);
    if (!options->path)
        write_file(fd, options->bytes);
    struct stat status;
    if (fstat(fd, &status) || (size_t)status.st_size < options->bytes)
        fail("the file is smaller than SIZE");
    return fd;
}

static void read_mapped(const volatile char *memory, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE)
        (void)memory[at];
}

// One call reads no more than the device's own window.
static void read_ahead(int fd, size_t bytes) {
    const size_t window = 128UL << 10;
    for (size_t at = 0; at < bytes; at += window)
        if (readahead(fd, (off_t)at, window))
            fail("readahead");
}

// A little heap at the end, so that the peak of the charge is after the last page was mapped and written back. The
// pages are brought back again and again: a machine may take those that nobody has used for a while before all of them
// have been counted.
static void hold_file(const struct options *options, int fd, const volatile char *mapped) {
    const size_t last = 4UL << 20;
    touch(map_anonymous(last, MAP_PRIVATE), last);
    truth_breakdown(last, options->bytes, 0, 0);
    truth("app_max_rss_bytes", (mapped ? options->bytes : 0) + last);
    truth("tree_max_pss_bytes", (mapped ? options->bytes : 0) + last);
    truth("sys_max_rss_bytes", options->bytes + last);
    struct options slice = *options;
    for (unsigned held = 0; held < options->hold_ms; held += slice.hold_ms) {
        if (mapped)
            read_mapped(mapped, options->bytes);
        else
            read_ahead(fd, options->bytes);
        slice.hold_ms = options->hold_ms - held < 50 ? options->hold_ms - held : 50;
        hold(&slice);
    }
}

void make_mapfile(const struct options *options) {
    int fd = input(options);
    volatile char *memory = mmap(NULL, options->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    read_mapped(memory, options->bytes);
    truth("peak_detail.file_mapped", options->bytes);
    hold_file(options, fd, memory);
}

void make_readfile(const struct options *options) {
    static char block[1 << 16];
    int fd = input(options);
    lseek(fd, 0, SEEK_SET);
    for (size_t at = 0; at < options->bytes;) {
        size_t want = options->bytes - at < sizeof block ? options->bytes - at : sizeof block;
        ssize_t n = read(fd, block, want);
        if (n <= 0)
            fail("read");
        at += (size_t)n;
    }
    hold_file(options, fd, NULL);
}

void make_writefile(const struct options *options) {
    int fd = open_file(options, O_RDWR | O_CREAT | O_TRUNC);
    write_file(fd, options->bytes);
    if (options->fsync) {
        if (fsync(fd))
            fail("fsync");
        truth("peak_detail.file_dirty", 0);
    }
    hold_file(options, fd, NULL);
}
