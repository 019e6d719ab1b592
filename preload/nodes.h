// Where memory is: NUMA nodes. Ranks are spread over them in turn (HPMMAP, IPDPS 2014, section III).
#pragma once

// The node this process takes its memory from, as number + 1; 0: any. With BURSAR_PIN it then runs there, too.
unsigned nodes_choose(void);
