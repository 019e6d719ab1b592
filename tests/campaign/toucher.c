// Holds 20 MiB for a fifth of a second, says so on both streams, and ends with the status it is given.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    enum { BYTES = 20 << 20 };
    if (write(1, "begin\n", 6) != 6 || write(2, "beside\n", 7) != 7) {
        return 98;
    }
    char *held = malloc(BYTES);
    if (!held) {
        return 97;
    }
    memset(held, 1, BYTES);
    struct timespec fifth = {.tv_nsec = 200000000};
    nanosleep(&fifth, NULL);
    for (long at = 0; at < BYTES; at += 4096) {
        if (held[at] != 1) {
            return 96;
        }
    }
    return write(1, "end\n", 4) == 4 ? argc > 1 ? atoi(argv[1]) : 0 : 98;
}
