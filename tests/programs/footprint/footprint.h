// A program of a known footprint: what its kinds share.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PAGE 4096UL
#define HUGE_PAGE (2UL << 20)

struct options {
    size_t bytes;     // the footprint, a whole number of pages
    const char *path; // file to use; NULL: one made beside the working directory and removed
    unsigned hold_ms; // how long the footprint is kept
    unsigned count;   // children, threads or processes
    double share;     // part of its inheritance that each child writes, 0 to 1
    bool fsync;       // the written file reaches the disk before it is held
    bool transparent; // huge pages by madvise instead of the hugetlb pool
};

// Each makes its footprint, tells the truth of it, holds it and gives it back.
void make_private(const struct options *options);
void make_shared(const struct options *options);
void make_sysv(const struct options *options);
void make_tmpfs(const struct options *options);
void make_cow(const struct options *options);
void make_mapfile(const struct options *options);
void make_readfile(const struct options *options);
void make_writefile(const struct options *options);
void make_locked(const struct options *options);
void make_hugepages(const struct options *options);
void make_pagetables(const struct options *options);
void make_threads(const struct options *options);
void make_spawn(const struct options *options);

// Prints one line `name=bytes`. Names are paths in the JSON of `bursar run`.
void truth(const char *name, size_t value);
// Prints `peak_breakdown.*` of a program that has nothing but these.
void truth_breakdown(size_t heap, size_t file, size_t shared, size_t hugetlb);
// Flushes what was printed and sleeps for --hold.
void hold(const struct options *options);

// Ends the program with a sentence about `what` and errno.
_Noreturn void fail(const char *what);
// Writes something different to every page of the range, so that none is zero or like another.
void touch(void *start, size_t bytes);
// Anonymous memory in 4 KiB pages whatever the machine's policy, not touched yet.
void *map_anonymous(size_t bytes, int flags);

// Forks `count` children that each do `work`, and returns when all have; they wait for release_children.
void start_children(const struct options *options, void (*work)(const struct options *, void *), void *memory);
void release_children(void);

// Opens the file of --path, or a new one of its own that disappears with the program.
int open_file(const struct options *options, int flags);
// Writes `bytes` through a small buffer.
void write_file(int fd, size_t bytes);
