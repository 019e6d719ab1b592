// The program's heap is as it would be without us: a block of 200 kB is still a mapping of its own, which glibc gives
// up once a larger one has been given back.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int before = mallinfo2().hblks;
    void *volatile block = malloc(200000);
    int after = mallinfo2().hblks;
    free(block);
    if (before == 0 && after == 1)
        return 0;
    printf("%d mappings of the heap's own, %d with a block of 200 kB\n", before, after);
    return 1;
}
