// Opens the MPI library named by its argument for itself alone, as a plug-in would, and calls it.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(int *, char ***) = dlsym(library, "MPI_Init");
    int (*initialized)(int *) = dlsym(library, "MPI_Initialized");
    int (*finalize)(void) = dlsym(library, "MPI_Finalize");
    double (*wtime)(void) = dlsym(library, "MPI_Wtime");
    int flag;
    if (init(NULL, NULL))
        return 1;
    for (int i = 0; i < 1000; i++)
        initialized(&flag);
    // The result is of floating point.
    double first = wtime();
    for (int i = 0; i < 1000; i++)
        if (wtime() < first)
            return 1;
    return finalize();
}
