/* The program that stands for the reader's own: reads the files that it is given, and works in a heap of 8 MiB for as
 * many seconds as APP_SECONDS says, or for a moment: long enough to be sampled beside other work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HELD_BYTES = 8 << 20 };

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        FILE *input = fopen(arguments[i], "r");
        while (input && fgetc(input) != EOF)
            ;
        if (input)
            fclose(input);
    }
    char *held = malloc(HELD_BYTES);
    if (!held)
        return 1;
    const char *seconds = getenv("APP_SECONDS");
    time_t end = time(NULL) + (seconds ? atoi(seconds) : 0);
    do
        memset(held, count, HELD_BYTES);
    while (time(NULL) < end);
    nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
    printf("%d\n", held[0]);
    free(held);
    return 0;
}
