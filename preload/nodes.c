#include "nodes.h"

#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "sys.h"
#include "text.h"

enum { MOST = 1024, WORD = 64 };

struct set {
    uint64_t words[MOST / WORD];
};

static bool has(const struct set *set, uint32_t i) {
    return set->words[i / WORD] >> i % WORD & 1;
}

// A list as the kernel prints it: "0-3,8".
static struct set read_list(const char *path) {
    struct set set = {0};
    char text[4096];
    if (text_of_file(path, text, sizeof text) <= 0)
        return set;
    for (const char *at = text; *at >= '0' && *at <= '9'; at += *at == ',') {
        uint64_t first = text_number(&at, 10), last = first;
        if (*at == '-') {
            at++;
            last = text_number(&at, 10);
        }
        for (uint64_t i = first; i <= last && i < MOST; i++)
            set.words[i / WORD] |= 1UL << i % WORD;
    }
    return set;
}

// Within what the process may run on already: a launcher that bound it has decided.
static void run_on(uint32_t node) {
    char path[64];
    struct set allowed = {0}, both;
    text_format(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
    struct set near = read_list(path);
    bool any = false;
    sys(SYS_sched_getaffinity, 0, sizeof allowed, &allowed);
    for (uint32_t i = 0; i < MOST / WORD; i++)
        any |= (both.words[i] = near.words[i] & allowed.words[i]) != 0;
    if (any)
        sys(SYS_sched_setaffinity, 0, sizeof both, &both);
}

static uint32_t the_nth(const struct set *set, uint32_t n) {
    for (uint32_t i = 0; i < MOST; i++)
        if (has(set, i) && !n--)
            return i;
    return MOST;
}

unsigned nodes_choose(void) {
    struct set nodes = read_list("/sys/devices/system/node/has_memory");
    uint32_t count = 0, node = MOST;
    for (uint32_t i = 0; i < MOST; i++)
        count += has(&nodes, i);
    bool asked = getenv("BURSAR_POOL_NODE");
    if (count < 2 && !asked)
        return 0;
    if (asked)
        node = number_of("BURSAR_POOL_NODE", MOST);
    else if (process.rank_plus_1)
        node = the_nth(&nodes, process.local_rank % count);
    else
        sys(SYS_getcpu, 0, &node, 0);
    if (node >= MOST)
        return 0;
    if (getenv("BURSAR_PIN"))
        run_on(node);
    return node + 1;
}
