// Prints each signal that it gets, by its number, until standard input ends. Begins with the line "ready".
//
// usage: signals
//        signals alarm SECONDS COMMAND [ARG ...]    sets an alarm, which an exec keeps, and becomes the command
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print(int number) {
    char line[4] = {(char)('0' + number / 10), (char)('0' + number % 10), '\n', 0};
    if (write(STDOUT_FILENO, line, 3) != 3) {
        _exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "alarm")) {
        alarm((unsigned)atoi(argv[2]));
        execv(argv[3], argv + 3);
        return 1;
    }
    for (int number = 1; number <= 64; number++) {
        struct sigaction action = {.sa_handler = print, .sa_flags = SA_RESTART};
        sigfillset(&action.sa_mask);
        // What cannot be caught stays as it is.
        sigaction(number, &action, NULL);
    }
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) {
        return 1;
    }
    char byte;
    ssize_t got;
    do {
        got = read(STDIN_FILENO, &byte, 1);
    } while (got > 0 || (got < 0 && errno == EINTR));
    return 0;
}
