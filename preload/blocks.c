#include "blocks.h"

#include <string.h>

#include "text.h"

enum { HUGE_ORDER = 9 };

struct blocks blocks_now(void) {
    static char text[4096];
    struct blocks now = {0};
    if (text_of_file("/proc/buddyinfo", text, sizeof text) <= 0)
        return (struct blocks){UINT64_MAX, UINT64_MAX};
    // "Node 0, zone   Normal      1      0 …", by order.
    for (const char *line = strstr(text, "zone"); line; line = strstr(line, "zone")) {
        line += 4;
        while (*line == ' ')
            line++;
        while (*line && *line != ' ')
            line++;
        for (uint32_t order = 0; *line && *line != '\n'; order++) {
            while (*line == ' ')
                line++;
            if (*line < '0' || *line > '9')
                break;
            uint64_t count = text_number(&line, 10);
            now.pages += count << order;
            if (order >= HUGE_ORDER)
                now.huge += count << (order - HUGE_ORDER);
        }
    }
    return now;
}
