#include "plan.h"

#include <string.h>
#include <sys/stat.h>

#include "arena.h"
#include "sys.h"
#include "text.h"

enum { WORDS = 10 };

struct plan plan;

// The words of a line, which it then consists of; how many.
static uint32_t split(char *line, char **words) {
    uint32_t count = 0;
    for (char *at = line; *at && count < WORDS;) {
        while (*at == ' ' || *at == '\t')
            *at++ = 0;
        if (*at && *at != '#')
            words[count++] = at;
        else
            break;
        while (*at && *at != ' ' && *at != '\t')
            at++;
    }
    return count;
}

static uint64_t number(const char *word, uint64_t otherwise) {
    return *word >= '0' && *word <= '9' ? text_number(&word, 10) : otherwise;
}

static int index_in(const char *word, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(word, names[i]))
            return i;
    return -1;
}

static bool rule_of(char **words, struct rule *rule) {
    static const char *const kinds[] = {"mmap", "heap", "bss", "data"};
    static const char *const actions[] = {"leave", "huge", "eager", "base", "pool"};
    int kind = index_in(words[1], kinds, 4), action = index_in(words[6], actions, 5);
    *rule = (struct rule){
        .kind = kind,
        .action = action,
        .size_class = number(words[2], PLAN_ANY),
        .ordinal = number(words[3], UINT64_MAX),
        .from = number(words[4], 0),
        .to = number(words[5], UINT64_MAX),
        .cost_ns = number(words[7], 0),
        .benefit_ns = number(words[8], 0),
        .object = words[2],
    };
    return kind >= 0 && action >= 0;
}

static void take(char **words, uint32_t count, bool *ours, const char *build_id) {
    const struct {
        const char *name;
        uint64_t *at;
    } figures[] = {{"ahead", &plan.ahead}, {"dense", &plan.dense}, {"least", &plan.least}, {"observe", &plan.observes}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (count == 2 && !strcmp(words[0], figures[i].name))
            *figures[i].at = number(words[1], *figures[i].at);
    if (count == 3 && !strcmp(words[0], "costs")) {
        plan.base_fault_ns = number(words[1], 0);
        plan.populate_ns = number(words[2], 0);
    }
    if (count == 2 && !strcmp(words[0], "program"))
        *ours = !strcmp(words[1], "*") || !strcmp(words[1], build_id);
    if (strcmp(words[0], "rule"))
        return;
    struct rule *rule = &plan.rules[plan.count];
    if (!*ours && count == 9)
        plan.others++;
    else if (count == 9 && rule_of(words, rule))
        plan.count++;
    else
        plan.unreadable++;
}

bool plan_read(const char *directory, const char *build_id) {
    char path[4400];
    text_format(path, sizeof path, "%s/plan", directory);
    struct stat found;
    if (sys_failed(sys(SYS_newfstatat, AT_FDCWD, path, &found, 0)))
        return false;
    char *text = arena(found.st_size + 1);
    if (!text || text_of_file(path, text, found.st_size + 1) <= 0)
        return false;
    plan.dense = 461;
    plan.least = 4 << 20;
    uint32_t lines = 1;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    if (!(plan.rules = arena(lines * sizeof *plan.rules)))
        return false;
    bool ours = false;
    for (char *line = text, *end; line; line = end) {
        if ((end = strchr(line, '\n')))
            *end++ = 0;
        char *words[WORDS];
        uint32_t count = split(line, words);
        if (count)
            take(words, count, &ours, build_id);
    }
    return true;
}

struct rule *plan_next(uint32_t *index, enum advice_kind kind, uint32_t size_class, uint64_t ordinal) {
    while (*index < plan.count) {
        struct rule *rule = &plan.rules[(*index)++];
        if (rule->kind != kind)
            continue;
        if (kind != ADVICE_MMAP || ((rule->size_class == PLAN_ANY || rule->size_class == size_class) &&
                                    (rule->ordinal == UINT64_MAX || rule->ordinal == ordinal)))
            return rule;
    }
    return NULL;
}
