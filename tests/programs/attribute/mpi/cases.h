// Cases with MPI, of two ranks.
#pragma once

#include <mpi.h>

#include "../truth.h"

extern int rank;

void make_receive(size_t bytes);
void make_thread_in_barrier(size_t bytes);
void make_peer_in_barrier(size_t bytes);
void make_window(size_t bytes);
void make_window_shared(size_t bytes);
void make_staging(size_t bytes);
void make_messages(size_t bytes);
void make_exchange(size_t bytes);
void make_multiple(size_t bytes);
void make_counted(size_t bytes);
void make_callback(size_t bytes);
void make_exit_in_callback(size_t bytes);
void make_abort(size_t bytes);
void make_killed(size_t bytes);
void make_no_finalize(size_t bytes);
void make_spawn(size_t bytes);

// MPI_Init, and who we are.
void begin(void);
// An application's block, written to.
void *filled(size_t bytes);
