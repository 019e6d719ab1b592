// Opens and closes a library that is a component, again and again: its calls add up.
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    for (int i = 0; i < 20; i++) {
        void *library = dlopen("libouter.so", RTLD_NOW);
        int (*rank)(void) = library ? dlsym(library, "outer_rank") : NULL;
        if (!rank)
            return 1;
        for (int call = 0; call < 10; call++)
            if (rank())
                return 1;
        dlclose(library);
        if (dlopen("libouter.so", RTLD_NOLOAD | RTLD_NOW))
            return 1;
    }
    MPI_Finalize();
    return 0;
}
