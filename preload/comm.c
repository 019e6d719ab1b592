#include "comm.h"

#include <string.h>

#include "arena.h"
#include "lock.h"
#include "log.h"
#include "mpi.h"
#include "requests.h"

enum { RANKS = 1 << 20, PLACES = 4096 };

// Where the arguments stand; above 5, on the stack.
struct shape {
    const char *name;
    int8_t count, type, to, comm;
    int8_t request; // of what is only prepared; 0: it is sent at once
    int8_t parts;   // how often the count is sent; 0: once
};

static const struct shape shapes[] = {
    {"Send", 1, 2, 3, 5, 0, 0},
    {"Isend", 1, 2, 3, 5, 0, 0},
    {"Ssend", 1, 2, 3, 5, 0, 0},
    {"Issend", 1, 2, 3, 5, 0, 0},
    {"Bsend", 1, 2, 3, 5, 0, 0},
    {"Ibsend", 1, 2, 3, 5, 0, 0},
    {"Rsend", 1, 2, 3, 5, 0, 0},
    {"Irsend", 1, 2, 3, 5, 0, 0},
    {"Sendrecv", 1, 2, 3, 10, 0, 0},
    {"Isendrecv", 1, 2, 3, 10, 0, 0},
    {"Sendrecv_replace", 1, 2, 3, 7, 0, 0},
    {"Send_init", 1, 2, 3, 5, 6, 0},
    {"Ssend_init", 1, 2, 3, 5, 6, 0},
    {"Bsend_init", 1, 2, 3, 5, 6, 0},
    {"Rsend_init", 1, 2, 3, 5, 6, 0},
    {"Psend_init", 2, 3, 4, 6, 8, 1},
};

// An argument of each is a request, or several; NULL ends them.
static const char *const of_requests[] = {"MPI_Start", "MPI_Startall", "MPI_Request_free", NULL};

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

enum comm_look comm_looks_at(const char *name) {
    if (!counting_messages)
        return COMM_NOT;
    const struct shape *shape = shape_of(name);
    if (shape)
        return shape->request ? COMM_AFTER : COMM_BEFORE;
    for (size_t i = 0; of_requests[i]; i++)
        if (!strcmp(name, of_requests[i]))
            return COMM_BEFORE;
    return ends_one(name) ? COMM_BEFORE : COMM_NOT;
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

static uint64_t argument(int8_t at, const uint64_t arguments[6], const uint64_t *stack) {
    return at < 6 ? arguments[at] : stack[at - 6];
}

// False: to nobody.
static bool message_of(const struct function *function, const struct shape *shape, const uint64_t arguments[6],
                       const uint64_t *stack, struct message *message) {
    bool large = shape->parts || !strcmp(function->name + strlen(function->name) - 2, "_c");
    uint64_t count = large ? arguments[shape->count] : (uint32_t)arguments[shape->count];
    uint64_t parts = shape->parts ? (uint32_t)arguments[shape->parts] : 1;
    int32_t to = arguments[shape->to];
    int size = 0;
    // MPI_PROC_NULL is a negative number everywhere.
    if (to < 0 || !ready() || mpi()->type_size(arguments[shape->type], &size))
        return false;
    *message = (struct message){world_rank(argument(shape->comm, arguments, stack), to), parts * count * size};
    return true;
}

static void count_message(struct message message) {
    sent[message.to].messages++;
    sent[message.to].bytes += message.bytes;
}

static void count_started(uint64_t requests, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        const struct message *message = request_message(mpi_request(requests, i));
        if (message)
            count_message(*message);
    }
}

__attribute__((used)) void comm_entering(const struct function *function, const uint64_t arguments[6],
                                         const uint64_t *stack) {
    if (mpi_asked())
        return;
    struct mpi_call before = mpi_begin();
    const char *name = function->name;
    const struct shape *shape = shape_of(name);
    struct message message;
    lock_take(&comm_lock);
    if (shape) {
        if (message_of(function, shape, arguments, stack, &message))
            count_message(message);
    } else if (ends_one(name)) {
        memset(places, 0, sizeof places);
    } else if (ready()) {
        if (!strcmp(name, "MPI_Start"))
            count_started(arguments[0], 1);
        else if (!strcmp(name, "MPI_Startall"))
            count_started(arguments[1], arguments[0]);
        else
            request_forget(mpi_request(arguments[0], 0));
    }
    lock_release(&comm_lock);
    mpi_done(before);
}

__attribute__((used)) void comm_prepared(const struct function *function, const uint64_t arguments[6],
                                         const uint64_t *stack, int error) {
    if (error || mpi_asked())
        return;
    struct mpi_call before = mpi_begin();
    const struct shape *shape = shape_of(function->name);
    struct message message;
    lock_take(&comm_lock);
    if (message_of(function, shape, arguments, stack, &message))
        request_keep(mpi_request(argument(shape->request, arguments, stack), 0), message);
    lock_release(&comm_lock);
    mpi_done(before);
}

void comm_log(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; sent && i < ranks; i++)
        count += sent[i].messages != 0;
    if (!count)
        return;
    log_begin(ENTRY_EXCHANGED);
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
