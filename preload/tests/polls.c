// Tests of a request of the program's own, which MPI asks a function of the program's about: that polls, too, and
// leaves every third test by longjmp.
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>

static jmp_buf away;
static int asked;

static int query(void *state, MPI_Status *status) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (++asked % 3 == 0)
        longjmp(away, 1);
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_TAG = status->MPI_SOURCE = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int forget(void *state) {
    (void)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
    (void)state;
    (void)complete;
    return MPI_SUCCESS;
}

// Calls from deeper in the stack than who polled before.
static __attribute__((noinline)) void begin(MPI_Request *request, int *state) {
    MPI_Grequest_start(query, forget, cancel, state, request);
    MPI_Grequest_complete(*request);
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    volatile int left = 0, done = 0;
    for (volatile int i = 0; i < 9; i++) {
        MPI_Request request;
        int state = 1, flag, size;
        begin(&request, &state);
        if (setjmp(away)) {
            left++;
        } else {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            done += flag;
        }
        // After the jump too it is a call from outside.
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    MPI_Finalize();
    printf("%d left, %d done\n", left, done);
    return left != 3 || done != 6;
}
