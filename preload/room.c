#include "room.h"

#include <string.h>

#include "text.h"

uint64_t room_number(const char *text, const char *name) {
    const char *at = strstr(text, name);
    if (!at)
        return UINT64_MAX;
    for (at += strlen(name); *at == ' ' || *at == '\t'; at++)
        ;
    return *at >= '0' && *at <= '9' ? text_number(&at, 10) : UINT64_MAX;
}

static uint64_t of_file(struct room_text *text, const char *file, uint64_t otherwise) {
    text_format(text->file, sizeof text->file, "%s/%s", text->path, file);
    return text_of_file(text->file, text->text, sizeof text->text) > 0 ? room_number(text->text, "") : otherwise;
}

static uint64_t least_limit(struct room_text *text, const char *file, const char *used) {
    uint64_t limit = of_file(text, file, UINT64_MAX), now = of_file(text, used, 0);
    return limit == UINT64_MAX ? limit : limit > now ? limit - now : 0;
}

// What the cgroup and those it is in still allow.
static uint64_t of_cgroups(struct room_text *text) {
    char *path = text->path;
    uint64_t room = UINT64_MAX;
    if (text_of_file("/proc/self/cgroup", text->groups, sizeof text->groups) <= 0)
        return room;
    const char *two = strstr(text->groups, "0::/"), *one = strstr(text->groups, ":memory:/");
    const char *from = one ? one + strlen(":memory:") : two ? two + strlen("0::") : "/";
    size_t length = strcspn(from, "\n"), root;
    text_format(path, sizeof text->path, one ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup");
    root = strlen(path);
    if (root + length >= sizeof text->path)
        return room;
    memcpy(path + root, from, length);
    path[root + length] = 0;
    for (char *end = path + root + length; end > path + root; *end = 0) {
        uint64_t here = one ? least_limit(text, "memory.limit_in_bytes", "memory.usage_in_bytes")
                            : least_limit(text, "memory.max", "memory.current");
        room = least(here, room);
        while (end > path + root && *--end != '/')
            ;
    }
    return room;
}

uint64_t room_now(struct room_text *text) {
    if (text_of_file("/proc/meminfo", text->text, sizeof text->text) <= 0)
        return 0;
    uint64_t available = room_number(text->text, "MemAvailable:") * 1024;
    return least(of_cgroups(text), available);
}
