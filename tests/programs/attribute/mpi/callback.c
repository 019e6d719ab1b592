// Functions of the application's that MPI calls: what they obtain is the application's.
#include <stdlib.h>
#include <unistd.h>

#include "cases.h"

static size_t each;

static void combine(void *in, void *out, int *count, MPI_Datatype *type) {
    (void)type;
    static void *kept;
    if (!kept)
        kept = filled(each);
    for (int i = 0; i < *count; i++)
        ((int *)out)[i] += ((int *)in)[i];
}

static int delete (MPI_Comm communicator, int key, void *value, void *extra) {
    (void)communicator, (void)key, (void)value, (void)extra;
    filled(each);
    return MPI_SUCCESS;
}

static void end(MPI_Comm *communicator, int *error, ...) {
    (void)communicator, (void)error;
    filled(each);
    hold();
    exit(3);
}

// An operation on both ranks, and an attribute.
void make_callback(size_t bytes) {
    begin();
    each = bytes / 2;
    MPI_Op operation;
    MPI_Op_create(combine, 1, &operation);
    int one = 1, sum = 0, key;
    // Whoever combines, both have it after this.
    MPI_Reduce(&one, &sum, 1, MPI_INT, operation, 0, MPI_COMM_WORLD);
    MPI_Reduce(&one, &sum, 1, MPI_INT, operation, 1, MPI_COMM_WORLD);
    if (rank == 1 && sum != 2)
        fail("MPI_Reduce");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &key);
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    truth_of(rank, "application", "heap", 2 * each);
    truth_of(rank, "mpi", "peak_bytes", 0);
    hold();
}

// Ends from within an error handler, inside MPI.
void make_exit_in_callback(size_t bytes) {
    begin();
    each = bytes;
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(end, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    truth_of(rank, "application", "heap", bytes);
    MPI_Send(&rank, 1, MPI_INT, 12345, 0, MPI_COMM_WORLD);
}
