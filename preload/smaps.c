#include "smaps.h"

#include <errno.h>
#include <string.h>

#include "arena.h"
#include "descriptor.h"
#include "lock.h"
#include "sys.h"
#include "text.h"

enum { BUFFER = 64 << 10 };

struct lock smaps_lock;

static bool is_range(const char *line) {
    return (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f');
}

// "7f..-7f.. rw-p offset major:minor inode   path"
static struct mapping of_range(const char *line) {
    struct mapping mapping = {0};
    mapping.begin = text_number(&line, 16);
    line++;
    mapping.end = text_number(&line, 16);
    line++;
    mapping.protection = (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0);
    mapping.protection |= line[2] == 'x' ? PROT_EXEC : 0;
    mapping.shared = line[3] == 's';
    line += 5;
    text_number(&line, 16);
    line++;
    mapping.major = text_number(&line, 16);
    line++;
    text_number(&line, 16);
    line++;
    mapping.inode = text_number(&line, 10);
    while (*line == ' ')
        line++;
    strncpy(mapping.path, line, sizeof mapping.path - 1);
    return mapping;
}

// "Rss:                 4 kB"
static void take(struct mapping *mapping, const char *line) {
    static const struct {
        const char *name;
        size_t at;
    } figures[] = {
        {"Rss:", offsetof(struct mapping, rss)},
        {"Pss:", offsetof(struct mapping, pss)},
        {"Anonymous:", offsetof(struct mapping, anonymous)},
        {"Shared_Hugetlb:", offsetof(struct mapping, hugetlb)},
        {"Private_Hugetlb:", offsetof(struct mapping, hugetlb)},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        size_t length = strlen(figures[i].name);
        if (*line != *figures[i].name || strncmp(line, figures[i].name, length))
            continue;
        line += length;
        while (*line == ' ')
            line++;
        *(uint64_t *)((char *)mapping + figures[i].at) += text_number(&line, 10) << 10;
        return;
    }
}

static int read_all(int input, void (*each)(const struct mapping *)) {
    static char *buffer;
    if (!buffer && !(buffer = arena_pages(BUFFER)))
        return -ENOMEM;
    struct mapping mapping = {0};
    size_t held = 0;
    long got;
    while ((got = sys(SYS_read, input, buffer + held, BUFFER - held)) > 0) {
        held += got;
        char *line = buffer, *end;
        while ((end = memchr(line, '\n', buffer + held - line))) {
            *end = 0;
            if (!is_range(line)) {
                take(&mapping, line);
            } else {
                if (mapping.end)
                    each(&mapping);
                mapping = of_range(line);
            }
            line = end + 1;
        }
        held -= line - buffer;
        memmove(buffer, line, held);
    }
    if (mapping.end)
        each(&mapping);
    return (int)got;
}

int smaps(const char *file, void (*each)(const struct mapping *)) {
    int input = open_out_of_the_way(file);
    if (input < 0)
        return input;
    lock_take(&smaps_lock);
    int failed = read_all(input, each);
    lock_release(&smaps_lock);
    sys(SYS_close, input);
    return failed;
}
