#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "truth.h"

int do_case(const struct known *cases, size_t count, int argc, char **argv) {
    for (size_t i = 0; argc == 3 && i < count; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].make(strtoull(argv[2], NULL, 10));
            return 0;
        }
    }
    fprintf(stderr, "usage: %s CASE BYTES\n", argv[0]);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "  %s\n", cases[i].name);
    return 2;
}

void truth_of(int rank, const char *component, const char *line, size_t bytes) {
    // In one piece, whatever other ranks print.
    char text[200];
    int length = snprintf(text, sizeof text, "/per_rank/%d/components/%s/%s=%zu\n", rank, component, line, bytes);
    if (write(STDOUT_FILENO, text, (size_t)length) != length)
        fail("standard output");
}

void truth(const char *component, const char *line, size_t bytes) {
    truth_of(0, component, line, bytes);
}

void truth_at(const char *pointer, size_t bytes) {
    char text[200];
    int length = snprintf(text, sizeof text, "%s=%zu\n", pointer, bytes);
    if (write(STDOUT_FILENO, text, (size_t)length) != length)
        fail("standard output");
}

void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

void touch(void *start, size_t bytes) {
    for (size_t i = 0; i < bytes; i += PAGE)
        *(volatile size_t *)((char *)start + i) = i + 1;
}

void hold(void) {
    usleep(1000 * 1000);
}
