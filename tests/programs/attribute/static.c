// static BYTES: no library can be loaded into it.
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t bytes = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    char *memory = malloc(bytes + 1);
    memset(memory, 1, bytes);
    return memory[bytes / 2] - 1;
}
