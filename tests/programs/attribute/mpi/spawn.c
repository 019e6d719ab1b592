// Ranks that are started by others.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"

void make_spawn(size_t bytes) {
    MPI_Comm parent, children;
    begin();
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char number[32];
        snprintf(number, sizeof number, "%zu", bytes);
        char *arguments[] = {"spawn", number, NULL};
        char program[PATH_MAX];
        if (!realpath("/proc/self/exe", program))
            fail("/proc/self/exe");
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Barrier(children);
    } else {
        filled(bytes);
        hold();
        MPI_Barrier(parent);
    }
    if (rank == 0 && parent == MPI_COMM_NULL)
        truth_at("/components/application/heap", bytes);
}
