// mpi CASE BYTES: memory of the application and of its MPI library, where the two are easily mistaken for each other.
#include <stdlib.h>

#include "cases.h"

int rank;

static const struct known cases[] = {
    {"receive", make_receive},
    {"thread-in-barrier", make_thread_in_barrier},
    {"peer-in-barrier", make_peer_in_barrier},
    {"window", make_window},
    {"window-shared", make_window_shared},
    {"staging", make_staging},
    {"messages", make_messages},
    {"exchange", make_exchange},
    {"multiple", make_multiple},
    {"counted", make_counted},
    {"callback", make_callback},
    {"exit-in-callback", make_exit_in_callback},
    {"abort", make_abort},
    {"killed", make_killed},
    {"no-finalize", make_no_finalize},
    {"spawn", make_spawn},
};

void begin(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

void *filled(size_t bytes) {
    void *block = malloc(bytes + 1);
    if (!block)
        fail("malloc");
    touch(block, bytes);
    return block;
}

int main(int argc, char **argv) {
    int status = do_case(cases, sizeof cases / sizeof *cases, argc, argv), begun, ended;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun && !ended)
        MPI_Finalize();
    return status;
}
