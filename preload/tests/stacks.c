// Calls MPI and another component from the very top of a stack of the program's own, behind which there is nothing.
#include <mpi.h>
#include <stddef.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "outer.h"

enum { STACK = 64 << 10, DEPTHS = 64 };

static ucontext_t program, fiber;
static int wrong;

static void calls(void) {
    int rank = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    wrong |= rank != 0 || outer_long(1) != 2 || outer_rank() != 0;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    char *stack = mmap(NULL, STACK + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mprotect(stack, STACK, PROT_READ | PROT_WRITE))
        return 1;
    for (int depth = 0; depth < DEPTHS; depth++) {
        getcontext(&fiber);
        fiber.uc_stack.ss_sp = stack;
        fiber.uc_stack.ss_size = STACK - depth * 8;
        fiber.uc_link = &program;
        makecontext(&fiber, calls, 0);
        swapcontext(&program, &fiber);
    }
    MPI_Finalize();
    return wrong;
}
