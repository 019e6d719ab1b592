// What happens to memory while MPI waits, and is not MPI's doing.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"

struct block {
    void *start;
    size_t bytes;
};

static void *touch_block(void *argument) {
    struct block *block = argument;
    usleep(100 * 1000);
    touch(block->start, block->bytes);
    return NULL;
}

void make_thread_in_barrier(size_t bytes) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct block block = {malloc(bytes + 1), bytes};
    pthread_t thread;
    if (rank == 1)
        pthread_create(&thread, NULL, touch_block, &block);
    else
        usleep(800 * 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        pthread_join(thread, NULL);
    truth_of(rank, "application", "heap", rank == 1 ? bytes : 0);
    truth_of(rank, "mpi", "peak_bytes", 0);
    hold();
}

// Both map it, both touch it, one of them while the other waits.
void make_peer_in_barrier(size_t bytes) {
    begin();
    char name[64] = {0};
    if (rank == 0)
        snprintf(name, sizeof name, "/bursar-truth-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int descriptor = shm_open(name, O_RDWR | O_CREAT, 0600);
    if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes))
        fail(name);
    MPI_Barrier(MPI_COMM_WORLD);
    shm_unlink(name);
    void *memory = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : NULL;
    if (memory == MAP_FAILED)
        fail("mmap");
    if (rank == 0)
        touch(memory, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        usleep(400 * 1000);
        touch(memory, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    truth_of(rank, "application", "shared", bytes);
    truth_of(rank, "application", "peak_bytes", bytes);
    truth_of(rank, "mpi", "peak_bytes", 0);
    // There is one of it, however many have mapped it.
    if (rank == 0)
        truth_at("/components/application/shared", bytes);
    hold();
}
