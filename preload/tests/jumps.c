// Leaves an error handler by longjmp: afterwards the program is inside nothing.
#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

static jmp_buf away;

static void handle(MPI_Comm *communicator, int *error, ...) {
    (void)communicator;
    (void)error;
    longjmp(away, 1);
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    int size;
    volatile int left = 0;
    for (volatile int i = 0; i < 10; i++) {
        if (setjmp(away))
            left++;
        else
            MPI_Send(NULL, 0, MPI_INT, 1000, 0, MPI_COMM_WORLD);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    printf("%d left\n", left);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return left != 10;
}
