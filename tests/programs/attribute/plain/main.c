// plain CASE BYTES: memory that belongs to the application, to a library, or to the allocator.
#include "plain.h"

static const struct known cases[] = {
    {"blocks", make_blocks},
    {"small", make_small},
    {"mapped", make_mapped},
    {"remapped", make_remapped},
    {"sbrk", make_sbrk},
    {"shared", make_shared},
    {"file", make_file},
    {"stacks", make_stacks},
    {"first-thread-ends", make_first_thread_ends},
    {"hugetlb", make_hugetlb},
    {"greedy", make_greedy},
    {"resting", make_resting},
    {"child", make_child},
    {"dropped", make_dropped},
    {"exec", make_exec},
    {"fork-killed", make_fork_killed},
    {"abort", make_abort},
    {"grow-killed", make_grow_killed},
    {"grow-abort", make_grow_abort},
    {"grow-long-killed", make_grow_long_killed},
    {"child-killed", make_child_killed},
    {"sandboxed", make_sandboxed},
    {"sandboxed-all", make_sandboxed_all},
    {"no-descriptor", make_no_descriptor},
    {"passing-block", make_passing_block},
    {"passing-mappings", make_passing_mappings},
    {"passing-library", make_passing_library},
};

int main(int argc, char **argv) {
    return do_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
