// The logs of ranks that do not see the run directory of rank 0, because they are on other nodes: MPI itself brings
// them there, when it comes to its end.
#pragma once

#include <stdbool.h>

// Of all ranks at MPI_Finalize: sizes first, then data. Whether this one's log was brought.
bool gather(const char *run_directory);
