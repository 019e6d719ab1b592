// A library that obtains memory.
#include <stdlib.h>
#include <string.h>

void *obtain(size_t bytes);
void *obtain(size_t bytes) {
    return memset(malloc(bytes + 1), 1, bytes + 1);
}
