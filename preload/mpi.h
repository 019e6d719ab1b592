// The process's own MPI, asked by the runtime: without mpi.h, for its handles differ from library to library.
#pragma once

#include "calls.h"

struct mpi {
    uint64_t world, byte; // handles: addresses of objects in Open MPI, numbers in MPICH and in the standard's ABI
    int (*comm_size)(uint64_t, int *);
    int (*comm_rank)(uint64_t, int *);
    int (*comm_test_inter)(uint64_t, int *);
    int (*comm_group)(uint64_t, uint64_t *);
    int (*comm_remote_group)(uint64_t, uint64_t *);
    int (*translate_ranks)(uint64_t, int, const int *, uint64_t, int *);
    int (*group_free)(uint64_t *);
    int (*type_size)(uint64_t, int *);
    int (*broadcast)(void *, int, uint64_t, int, uint64_t);
    int (*gather)(const void *, int, uint64_t, void *, int, uint64_t, int, uint64_t);
    int (*send)(const void *, int, uint64_t, int, int, uint64_t);
    int (*receive)(void *, int, uint64_t, int, int, uint64_t, void *);
};

// NULL: there is none that we know.
const struct mpi *mpi(void);

// A request, by the address of an array of them in the program's own code. Of an MPI that we know.
uint64_t mpi_request(uint64_t requests, int32_t at);

// What is asked of MPI between these two is not the program's call.
struct mpi_call {
    uint16_t inside, function;
    uint64_t frame;
};
struct mpi_call mpi_begin(void);
void mpi_done(struct mpi_call before);

// Whether the thread is between them, or is MPI's own.
static inline bool mpi_asked(void) {
    return self.inside == MPI && self.frame == UINT64_MAX;
}
