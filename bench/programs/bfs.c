// bfs FILE ROOTS pread|mmap|memory: breadth-first searches, after Graph500 (kernel 2), of a Kronecker graph whose edges
// lie in a file in CSR form. Offsets, parents and levels are on the heap; the edges stay in the file (pread, mmap) or
// are brought to the heap first (memory). Every tree is validated as Graph500 asks.
#include <sys/mman.h>

#include "program.h"

static const char magic[8] = "bfs-csr";

struct header {
    char magic[8];
    uint64_t vertices, edges; // edges as stored: both directions
};

struct graph {
    struct header header;
    uint64_t *offset; // vertices + 1
    off_t edges_at;
    const uint32_t *edge; // NULL: read from fd
    int fd;
    uint32_t *buffer; // the neighbours read last
};

struct tree {
    uint32_t *parent, *level; // NONE: not reached
    uint64_t reached, scanned;
};

static const uint32_t NONE = UINT32_MAX;

// ---- generate

// One edge of the Kronecker graph with Graph500's probabilities A 0.57, B 0.19, C 0.19.
static void kronecker(uint64_t index, unsigned scale, uint32_t *from, uint32_t *to) {
    *from = *to = 0;
    for (unsigned bit = 0; bit < scale; bit++) {
        double p = (double)(noise(index * 64 + bit) >> 11) * 0x1p-53;
        *from = *from << 1 | (p >= 0.76);
        *to = *to << 1 | ((p >= 0.57 && p < 0.76) || p >= 0.95);
    }
    // Labels are shuffled (a bijection), so that high degrees do not come first.
    uint32_t mask = (uint32_t)((1ul << scale) - 1);
    *from = (*from * 0x9E3779B1u + 12345) & mask;
    *to = (*to * 0x9E3779B1u + 12345) & mask;
}

static void generate(const char *path, unsigned scale, uint64_t factor) {
    struct header header = {.vertices = 1ul << scale};
    memcpy(header.magic, magic, sizeof magic);
    uint64_t pairs = factor << scale, *offset = allocate((header.vertices + 1) * sizeof *offset);
    memset(offset, 0, (header.vertices + 1) * sizeof *offset);
    for (uint64_t i = 0; i < pairs; i++) {
        uint32_t from, to;
        kronecker(i, scale, &from, &to);
        offset[from + 1] += from != to;
        offset[to + 1] += from != to;
    }
    for (uint64_t v = 0; v < header.vertices; v++)
        offset[v + 1] += offset[v];
    header.edges = offset[header.vertices];
    uint32_t *edge = allocate(header.edges * sizeof *edge);
    uint64_t *next = allocate(header.vertices * sizeof *next);
    memcpy(next, offset, header.vertices * sizeof *next);
    for (uint64_t i = 0; i < pairs; i++) {
        uint32_t from, to;
        kronecker(i, scale, &from, &to);
        if (from == to)
            continue;
        edge[next[from]++] = to;
        edge[next[to]++] = from;
    }
    int fd = open_or_fail(path, O_WRONLY | O_CREAT | O_TRUNC);
    write_whole(fd, &header, sizeof header);
    write_whole(fd, offset, (header.vertices + 1) * sizeof *offset);
    write_whole(fd, edge, header.edges * sizeof *edge);
    if (fsync(fd))
        fail(path);
}

// ---- search

static struct graph open_graph(const char *path, const char *mode) {
    struct graph graph = {.fd = open_or_fail(path, O_RDONLY)};
    read_whole(graph.fd, &graph.header, sizeof graph.header, 0);
    if (memcmp(graph.header.magic, magic, sizeof magic)) {
        errno = 0;
        fail(path);
    }
    size_t offsets = (graph.header.vertices + 1) * sizeof *graph.offset;
    size_t edges = graph.header.edges * sizeof *graph.edge;
    graph.offset = allocate(offsets);
    read_whole(graph.fd, graph.offset, offsets, sizeof graph.header);
    graph.edges_at = (off_t)(sizeof graph.header + offsets);
    if (strcmp(mode, "memory") == 0) {
        uint32_t *all = allocate(edges);
        read_whole(graph.fd, all, edges, graph.edges_at);
        graph.edge = all;
    } else if (strcmp(mode, "mmap") == 0) {
        char *map = mmap(NULL, (size_t)graph.edges_at + edges, PROT_READ, MAP_SHARED, graph.fd, 0);
        if (map == MAP_FAILED)
            fail("mmap");
        graph.edge = (const uint32_t *)(map + graph.edges_at);
    } else {
        uint64_t largest = 0;
        for (uint64_t v = 0; v < graph.header.vertices; v++) {
            uint64_t degree = graph.offset[v + 1] - graph.offset[v];
            largest = degree > largest ? degree : largest;
        }
        graph.buffer = allocate((largest + 1) * sizeof *graph.buffer);
    }
    return graph;
}

static const uint32_t *neighbours(const struct graph *graph, uint32_t vertex, uint64_t *count) {
    uint64_t first = graph->offset[vertex];
    *count = graph->offset[vertex + 1] - first;
    if (graph->edge)
        return graph->edge + first;
    off_t from = graph->edges_at + (off_t)(first * sizeof *graph->buffer);
    read_whole(graph->fd, graph->buffer, *count * sizeof *graph->buffer, from);
    return graph->buffer;
}

static void search(const struct graph *graph, uint32_t root, struct tree *tree, uint32_t *queue) {
    memset(tree->parent, 0xff, graph->header.vertices * sizeof *tree->parent);
    memset(tree->level, 0xff, graph->header.vertices * sizeof *tree->level);
    tree->parent[root] = root;
    tree->level[root] = 0;
    tree->scanned = 0;
    queue[0] = root;
    uint64_t tail = 1;
    for (uint64_t head = 0; head < tail; head++) {
        uint64_t count;
        const uint32_t *to = neighbours(graph, queue[head], &count);
        tree->scanned += count;
        for (uint64_t i = 0; i < count; i++) {
            if (tree->parent[to[i]] != NONE)
                continue;
            tree->parent[to[i]] = queue[head];
            tree->level[to[i]] = tree->level[queue[head]] + 1;
            queue[tail++] = to[i];
        }
    }
    tree->reached = tail;
}

// Graph500's checks: tree edges exist and join neighbouring levels, every edge joins levels at most one apart, and
// reached and unreached vertices are not joined. `confirmed` holds a byte per vertex.
static void validate(const struct graph *graph, uint32_t root, const struct tree *tree, uint8_t *confirmed) {
    memset(confirmed, 0, graph->header.vertices);
    confirmed[root] = 1;
    for (uint64_t v = 0; v < graph->header.vertices; v++) {
        uint64_t count;
        const uint32_t *to = neighbours(graph, (uint32_t)v, &count);
        errno = 0;
        for (uint64_t i = 0; i < count; i++) {
            if ((tree->parent[v] == NONE) != (tree->parent[to[i]] == NONE))
                fail("an edge leaves the tree");
            if (tree->parent[v] == NONE)
                break;
            if (tree->level[to[i]] > tree->level[v] + 1)
                fail("an edge skips a level");
            if (tree->parent[to[i]] == v && tree->level[to[i]] == tree->level[v] + 1)
                confirmed[to[i]] = 1;
        }
    }
    for (uint64_t v = 0; v < graph->header.vertices; v++) {
        if ((tree->parent[v] != NONE) != confirmed[v])
            fail("a tree edge is not an edge of the graph");
    }
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "generate") == 0) {
        generate(argv[2], (unsigned)atoi(argv[3]), strtoul(argv[4], NULL, 10));
        return 0;
    }
    if (argc != 4) {
        fputs("usage: bfs generate FILE SCALE EDGE_FACTOR | bfs FILE ROOTS pread|mmap|memory\n", stderr);
        return 2;
    }
    struct graph graph = open_graph(argv[1], argv[3]);
    uint64_t vertices = graph.header.vertices, roots = strtoul(argv[2], NULL, 10), scanned = 0, reached = 0;
    struct tree tree = {.parent = allocate(vertices * sizeof *tree.parent),
                        .level = allocate(vertices * sizeof *tree.level)};
    uint32_t *queue = allocate(vertices * sizeof *queue);
    uint8_t *confirmed = allocate(vertices);
    for (uint64_t r = 0, candidate = 0; r < roots; r++) {
        uint32_t root;
        do
            root = (uint32_t)(noise(candidate++) % vertices);
        while (graph.offset[root] == graph.offset[root + 1]);
        search(&graph, root, &tree, queue);
        validate(&graph, root, &tree, confirmed);
        scanned += tree.scanned;
        reached += tree.reached;
    }
    printf("bfs: %lu roots, %lu vertices reached, %lu edges scanned, valid\n", (unsigned long)roots,
           (unsigned long)reached, (unsigned long)scanned);
}
