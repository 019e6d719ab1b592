// loader LIBRARY: MPI as a plug-in has it: loaded, used and unloaded while the program runs.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return library;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    // First unused, so that it comes back to where it was, or somewhere else.
    dlclose(load(argv[1]));
    void *library = load(argv[1]);
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(library, "MPI_Init");
    int (*initialized)(int *) = (int (*)(int *))dlsym(library, "MPI_Initialized");
    int (*finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
    int yes = 0;
    init(NULL, NULL);
    for (int i = 0; i < 100; i++)
        initialized(&yes);
    finalize();
    dlclose(library);
    free(malloc(100));
    return !yes;
}
