// many FOLDER COUNT BYTES: opens FOLDER/1.so and so on, then libgreedy.so beside itself, which obtains so many bytes.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count < 4)
        return 2;
    char path[4096];
    for (int i = 1; i <= atoi(arguments[2]); i++) {
        snprintf(path, sizeof path, "%s/%d.so", arguments[1], i);
        if (!dlopen(path, RTLD_NOW))
            return 3;
    }
    void *library = dlopen("libobtain.so", RTLD_NOW);
    void *(*obtain)(size_t) = library ? dlsym(library, "obtain") : NULL;
    size_t bytes = strtoul(arguments[3], NULL, 10);
    void *held = obtain ? obtain(bytes) : NULL;
    if (!held)
        return 4;
    usleep(300000);
    free(held);
    printf("/components/late/heap=%zu\n", bytes);
    return 0;
}
