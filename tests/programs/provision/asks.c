// Asks for memory, writes to all of it, and prints its sum: asks BYTES
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned char *memory = malloc(bytes + 1);
    if (!memory)
        return 1;
    memset(memory, 1, bytes);
    unsigned long sum = 0;
    for (size_t at = 0; at < bytes; at += 4096)
        sum += memory[at];
    printf("%lu\n", sum);
    free(memory);
    return 0;
}
