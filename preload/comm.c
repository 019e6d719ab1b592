#include "comm.h"

#include <string.h>

#include "arena.h"
#include "lock.h"
#include "log.h"
#include "mpi.h"

enum { RANKS = 1 << 20, PLACES = 4096 };

// Where the arguments stand; above 5, on the stack.
struct shape {
    const char *name;
    int8_t count, type, to, comm;
};

static const struct shape shapes[] = {
    {"Send", 1, 2, 3, 5},
    {"Isend", 1, 2, 3, 5},
    {"Ssend", 1, 2, 3, 5},
    {"Issend", 1, 2, 3, 5},
    {"Bsend", 1, 2, 3, 5},
    {"Ibsend", 1, 2, 3, 5},
    {"Rsend", 1, 2, 3, 5},
    {"Irsend", 1, 2, 3, 5},
    {"Sendrecv", 1, 2, 3, 10},
    {"Isendrecv", 1, 2, 3, 10},
    {"Sendrecv_replace", 1, 2, 3, 7},
};

// A rank of a communicator, as the world counts it.
struct place {
    uint64_t comm;
    int32_t rank;
    uint32_t world; // + 1
};

struct sent {
    uint64_t messages, bytes;
};

bool counting_messages;
static struct sent *sent; // by rank in the world + 1
static uint32_t ranks = 1;
static struct place places[PLACES];
static uint64_t world_group;
struct lock comm_lock;

static const struct shape *shape_of(const char *name) {
    for (size_t i = 0; !strncmp(name, "MPI_", 4) && i < sizeof shapes / sizeof *shapes; i++) {
        size_t length = strlen(shapes[i].name);
        if (!strncmp(name + 4, shapes[i].name, length) && (!name[4 + length] || !strcmp(name + 4 + length, "_c")))
            return &shapes[i];
    }
    return NULL;
}

static bool ends_one(const char *name) {
    return !strcmp(name, "MPI_Comm_free") || !strcmp(name, "MPI_Comm_disconnect");
}

bool comm_looks_at(const char *name) {
    return counting_messages && (shape_of(name) || ends_one(name));
}

static bool ready(void) {
    if (sent)
        return true;
    int count;
    if (!mpi() || mpi()->comm_size(mpi()->world, &count) || mpi()->comm_group(mpi()->world, &world_group) ||
        count < 1 || count >= RANKS)
        return false;
    ranks = count + 1;
    sent = arena_pages(ranks * sizeof *sent);
    return sent;
}

// The rank in the world + 1; 0: it is in another.
static uint32_t world_rank(uint64_t comm, int32_t rank) {
    uint64_t hash = comm * 0x9E3779B97F4A7C15UL + (uint32_t)rank * 2654435761UL;
    struct place *place = &places[hash >> 20 & (PLACES - 1)];
    if (place->comm == comm && place->rank == rank && place->world)
        return place->world;
    uint64_t group = 0;
    int inter = 0, world = -1;
    mpi()->comm_test_inter(comm, &inter);
    if ((inter ? mpi()->comm_remote_group : mpi()->comm_group)(comm, &group) ||
        mpi()->translate_ranks(group, 1, &rank, world_group, &world))
        return 0;
    mpi()->group_free(&group);
    if (world < 0 || (uint32_t)world + 1 >= ranks)
        return 0;
    *place = (struct place){comm, rank, world + 1};
    return place->world;
}

static void count_message(const char *name, const uint64_t arguments[6], const uint64_t *stack) {
    const struct shape *shape = shape_of(name);
    bool large = !strcmp(name + strlen(name) - 2, "_c");
    uint64_t count = large ? arguments[shape->count] : (uint32_t)arguments[shape->count];
    uint64_t comm = shape->comm < 6 ? arguments[shape->comm] : stack[shape->comm - 6];
    int32_t to = arguments[shape->to];
    int size = 0;
    // MPI_PROC_NULL is a negative number everywhere.
    if (to < 0 || !ready() || mpi()->type_size(arguments[shape->type], &size))
        return;
    struct sent *place = &sent[world_rank(comm, to)];
    place->messages++;
    place->bytes += count * size;
}

__attribute__((used)) void comm_entering(const struct function *function, const uint64_t arguments[6],
                                         const uint64_t *stack) {
    if (mpi_asked())
        return;
    struct mpi_call before = mpi_begin();
    lock_take(&comm_lock);
    if (ends_one(function->name))
        memset(places, 0, sizeof places);
    else
        count_message(function->name, arguments, stack);
    lock_release(&comm_lock);
    mpi_done(before);
}

void comm_log(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; sent && i < ranks; i++)
        count += sent[i].messages != 0;
    if (!count)
        return;
    log_begin('X');
    log_time();
    log_number(count);
    for (uint32_t i = 0; i < ranks; i++) {
        if (!sent[i].messages)
            continue;
        log_number(i);
        log_number(sent[i].messages);
        log_number(sent[i].bytes);
    }
    log_end();
}

void comm_forget(void) {
    if (sent)
        memset(sent, 0, ranks * sizeof *sent);
}
