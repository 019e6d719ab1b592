// A collective write through a view with holes: the library that writes for all gathers the parts in a buffer of its
// own.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cases.h"

enum { PART = 4096, PARTS = 8192 };

// With 0 bytes the buffer is small, else so large.
void make_staging(size_t bytes) {
    begin();
    char path[64], size[32];
    snprintf(path, sizeof path, "bursar-truth-staging-%d", rank == 0 ? (int)getpid() : 0);
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(size, sizeof size, "%zu", bytes ? bytes : PART);
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "cb_buffer_size", size);
    MPI_Info_set(hints, "cb_nodes", "1");
    MPI_Info_set(hints, "romio_cb_write", "enable");

    char *parts = filled((size_t)PART * PARTS);
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, hints, &file))
        fail(path);
    MPI_Datatype view;
    MPI_Type_vector(PARTS, PART, 2 * PART, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, (MPI_Offset)rank * PART, MPI_BYTE, view, "native", hints);
    MPI_File_write_all(file, parts, PART * PARTS, MPI_BYTE, MPI_STATUS_IGNORE);
    if (rank == 0)
        truth_of(rank, "mpi", "heap", bytes);
    truth_of(rank, "application", "peak_bytes", 0);
    hold();
    MPI_File_close(&file);
    MPI_Type_free(&view);
    MPI_Info_free(&hints);
}
