// Functions of the program's that MPI calls: what they call is counted, and they may throw.
#include <mpi.h>

#include <cstdio>
#include <stdexcept>

static int adds, deletions;

static void add(void *from, void *into, int *count, MPI_Datatype *) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < *count; i++)
        static_cast<int *>(into)[i] += static_cast<int *>(from)[i];
    if (++adds == 3)
        throw std::runtime_error("from an operator");
}

static int forget(MPI_Comm, int, void *, void *) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    deletions++;
    return MPI_SUCCESS;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    int one[4] = {1, 1, 1, 1}, sum[4] = {}, caught = 0, key, flag;
    for (int i = 0; i < 5; i++) {
        try {
            MPI_Reduce_local(one, sum, 4, MPI_INT, op);
        } catch (const std::runtime_error &) {
            caught++;
        }
        // After the exception too it is a call from outside.
        MPI_Initialized(&flag);
    }
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, forget, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    void *value;
    MPI_Comm_get_attr(other, key, &value, &flag);
    bool copied = flag && value == &key;
    MPI_Comm_free(&other);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Op_free(&op);
    MPI_Finalize();
    std::printf("%d caught, %d sums, %d deletions, copied %d\n", caught, sum[0], deletions, copied);
    return caught != 1 || sum[0] != 5 || deletions != 2 || !copied;
}
