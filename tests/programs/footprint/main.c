// footprint KIND SIZE [options]: holds a known amount of one kind of memory and says how much.
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "footprint.h"

static const struct kind {
    const char *name;
    void (*make)(const struct options *options);
    const char *help;
} kinds[] = {
    {"private", make_private, "anonymous private memory"},
    {"shared", make_shared, "anonymous shared memory, also mapped by --count children"},
    {"sysv", make_sysv, "a System V segment, also mapped by --count children"},
    {"tmpfs", make_tmpfs, "a file written in /dev/shm, not mapped"},
    {"cow", make_cow, "private memory inherited by --count children that each write --share of it"},
    {"mapfile", make_mapfile, "a file mapped and touched"},
    {"readfile", make_readfile, "a file read through a small buffer"},
    {"writefile", make_writefile, "a file written through a small buffer, --fsync: clean"},
    {"locked", make_locked, "private memory under mlock"},
    {"hugepages", make_hugepages, "2 MiB pages of the hugetlb pool, --transparent: by madvise"},
    {"pagetables", make_pagetables, "page tables of a mapping with one page per 2 MiB touched"},
    {"threads", make_threads, "private memory touched by --count threads"},
    {"spawn", make_spawn, "--count processes one after the other, each with SIZE of private memory"},
};

static _Noreturn void usage(void) {
    fputs("usage: footprint KIND SIZE [--hold MS] [--count N] [--share 0..1] [--path FILE] [--fsync] [--transparent]\n"
          "SIZE is bytes, or with K, M or G. Prints one line NAME=BYTES for each line of the account that it knows.\n",
          stderr);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        fprintf(stderr, "  %-11s %s\n", kinds[i].name, kinds[i].help);
    exit(2);
}

static size_t parse_size(const char *text) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (*end) {
        const char *units = "KMG", *unit = strchr(units, *end);
        if (!unit || end[1])
            usage();
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (errno || end == text || value == 0 || value > (SIZE_MAX >> shift))
        usage();
    return ((size_t)value << shift) / PAGE * PAGE;
}

int main(int argc, char **argv) {
    static const struct option names[] = {
        {"hold", required_argument, NULL, 'h'},
        {"count", required_argument, NULL, 'c'},
        {"share", required_argument, NULL, 's'},
        {"path", required_argument, NULL, 'p'},
        {"fsync", no_argument, NULL, 'f'},
        {"transparent", no_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.hold_ms = 500, .share = 1.0};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (option) {
        case 'h':
            options.hold_ms = (unsigned)atoi(optarg);
            break;
        case 'c':
            options.count = (unsigned)atoi(optarg);
            break;
        case 's':
            options.share = atof(optarg);
            break;
        case 'p':
            options.path = optarg;
            break;
        case 'f':
            options.fsync = true;
            break;
        case 't':
            options.transparent = true;
            break;
        default:
            usage();
        }
    }
    if (argc - optind != 2 || options.share < 0 || options.share > 1)
        usage();
    options.bytes = parse_size(argv[optind + 1]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, argv[optind]) == 0) {
            printf("kind=%s\n", kinds[i].name);
            kinds[i].make(&options);
            return 0;
        }
    }
    usage();
}
