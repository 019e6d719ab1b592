// Cases without MPI.
#pragma once

#include "../truth.h"

void make_blocks(size_t bytes);
void make_small(size_t bytes);
void make_mapped(size_t bytes);
void make_remapped(size_t bytes);
void make_sbrk(size_t bytes);
void make_shared(size_t bytes);
void make_file(size_t bytes);
void make_hugetlb(size_t bytes);
void make_stacks(size_t bytes);
void make_first_thread_ends(size_t bytes);
void make_greedy(size_t bytes);
void make_resting(size_t milliseconds); // four times so long: in two threads, twice each
void make_child(size_t bytes);
void make_dropped(size_t bytes);
void make_exec(size_t bytes);
void make_fork_killed(size_t bytes);
void make_abort(size_t bytes);
void make_grow_killed(size_t bytes);
void make_grow_long_killed(size_t bytes);
void make_grow_abort(size_t bytes);
void make_child_killed(size_t bytes);
void make_sandboxed(size_t bytes);
void make_sandboxed_all(size_t bytes);
void make_no_descriptor(size_t bytes);
void make_passing_block(size_t bytes);
void make_passing_mappings(size_t bytes);
void make_passing_library(size_t bytes);
