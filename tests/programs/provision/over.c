// Asks for memory at once and writes to the beginning of it, then asks for more and writes to all: over ASKED USED
// LATER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 10 << 20 };

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    size_t asked = strtoul(argv[1], NULL, 10), used = strtoul(argv[2], NULL, 10), later = strtoul(argv[3], NULL, 10);
    char *memory = malloc(asked);
    if (!memory)
        return 1;
    memset(memory, 1, used);
    for (size_t done = 0; done < later; done += STEP) {
        char *more = malloc(STEP);
        if (!more)
            return 1;
        memset(more, 1, STEP);
    }
    printf("%d\n", memory[0]);
    return 0;
}
