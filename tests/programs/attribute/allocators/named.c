// named BYTES: holds so many bytes by a function that jemalloc alone has.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *mallocx(size_t bytes, int flags);

int main(int count, char **arguments) {
    size_t bytes = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
    memset(mallocx(bytes + 1, 0), 1, bytes + 1);
    usleep(300000);
    return 0;
}
