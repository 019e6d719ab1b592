#include "mpi.h"

#include <string.h>

#include "objects.h"

enum { MPICH_WORLD = 0x44000000 };

static struct mpi found;

static const struct {
    const char *name;
    void **function;
} names[] = {
    {"PMPI_Comm_size", (void **)&found.comm_size},
    {"PMPI_Comm_rank", (void **)&found.comm_rank},
    {"PMPI_Comm_test_inter", (void **)&found.comm_test_inter},
    {"PMPI_Comm_group", (void **)&found.comm_group},
    {"PMPI_Comm_remote_group", (void **)&found.comm_remote_group},
    {"PMPI_Group_translate_ranks", (void **)&found.translate_ranks},
    {"PMPI_Group_free", (void **)&found.group_free},
    {"PMPI_Type_size", (void **)&found.type_size},
    {"PMPI_Bcast", (void **)&found.broadcast},
    {"PMPI_Gather", (void **)&found.gather},
    {"PMPI_Send", (void **)&found.send},
    {"PMPI_Recv", (void **)&found.receive},
};

// Also in a library that was loaded for itself (RTLD_LOCAL).
static void *find(const char *name) {
    for (uint32_t id = 1; id <= object_count; id++)
        if (objects[id].map && objects[id].component == MPI && objects[id].named) {
            void *function = object_symbol(objects[id].map, name);
            if (function)
                return function;
        }
    return NULL;
}

// An executable may have been linked to a copy of its own, which is then everybody's.
static void *find_object(const char *name) {
    void *first = next_symbol(name);
    return first ? first : find(name);
}

const struct mpi *mpi(void) {
    if (found.world)
        return &found;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].function = find(names[i].name)))
            return NULL;
    found.byte = (uint64_t)find_object("ompi_mpi_byte");
    uint64_t world = (uint64_t)find_object("ompi_mpi_comm_world");
    if (!world) {
        // MPI 5.0, A.1; MPICH's mpi.h.
        bool standard = strstr(objects[object_of((uint64_t)found.send)].path, "libmpi_abi");
        world = standard ? 0x101 : MPICH_WORLD;
        found.byte = standard ? 0x247 : 0x4c00010d;
    }
    found.world = world;
    return &found;
}

uint64_t mpi_request(uint64_t requests, int32_t at) {
    if (!requests)
        return 0;
    // Numbers in MPICH, pointers elsewhere.
    return found.world == MPICH_WORLD ? ((uint32_t *)requests)[at] : ((uint64_t *)requests)[at];
}

struct mpi_call mpi_begin(void) {
    struct mpi_call before = {self.inside, self.function, self.frame};
    self.inside = MPI;
    self.function = 0;
    self.frame = UINT64_MAX;
    return before;
}

void mpi_done(struct mpi_call before) {
    self.inside = before.inside;
    self.function = before.function;
    self.frame = before.frame;
}
