// Opens files and closes what is open, in every way that programs do, and prints the numbers that it got.
//
// usage: descriptors range|each|nothing        how all from 3 up are closed: close_range, close, or not at all
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { FILES = 3, BYTES = 24 << 20, PAGE = 4096, EXIT_STATUS = 7 };

// What is loaded into a program works at its requests for memory.
static void use_memory(void) {
    char *memory = malloc(BYTES);
    if (!memory) {
        exit(1);
    }
    // Volatile, so that no compiler leaves it out.
    for (volatile char *at = memory; at < memory + BYTES; at += PAGE) {
        *at = 1;
    }
    free(memory);
}

static void print_numbers(const char *when) {
    use_memory();
    printf("%s", when);
    for (int i = 0; i < FILES; i++) {
        printf(" %d", open("/dev/null", O_RDONLY));
    }
    putchar('\n');
}

static void close_all(const char *way, int limit) {
    if (!strcmp(way, "range") && syscall(SYS_close_range, 3, ~0U, 0)) {
        exit(2);
    }
    for (int number = 3; !strcmp(way, "each") && number < limit; number++) {
        close(number);
    }
}

int main(int argc, char **argv) {
    struct rlimit limit;
    if (argc != 2 || getrlimit(RLIMIT_NOFILE, &limit)) {
        return 2;
    }
    printf("limit %ld\n", (long)limit.rlim_cur);
    print_numbers("first");
    close_all(argv[1], (int)limit.rlim_cur);
    print_numbers("then");
    int opened = 0;
    while (open("/dev/null", O_RDONLY) >= 0) {
        opened++;
    }
    printf("full %s\n", strerror(errno));
    use_memory();
    close_all(argv[1], (int)limit.rlim_cur);
    use_memory();
    printf("opened %d\n", opened);
    return fflush(stdout) ? 1 : EXIT_STATUS;
}
