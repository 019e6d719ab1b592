// Ranks that end as they should not.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cases.h"

static void ready(size_t bytes) {
    begin();
    filled(bytes);
    truth_of(rank, "application", "heap", bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    hold();
}

// Who is killed cannot tell its end: on a busy machine its last look may be long ago.
static void ready_to_be_killed(size_t bytes) {
    ready(bytes);
    hold();
    hold();
}

// The first to come here has the others killed, maybe before they come here.
void make_abort(size_t bytes) {
    ready_to_be_killed(bytes);
    MPI_Abort(MPI_COMM_WORLD, 7);
}

void make_killed(size_t bytes) {
    ready_to_be_killed(bytes);
    if (rank == 1)
        kill(getpid(), SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
}

void make_no_finalize(size_t bytes) {
    ready(bytes);
    _exit(0);
}
