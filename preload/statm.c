#include "statm.h"

#include "space.h"
#include "text.h"

uint64_t statm_now(struct statm *now) {
    char text[128];
    // By /proc/self it is empty once the first thread has ended.
    long bytes = text_of_file("/proc/thread-self/statm", text, sizeof text);
    if (bytes <= 0)
        return 0;
    const char *at = text;
    text_number(&at, 10);
    at++;
    now->resident = text_number(&at, 10);
    at++;
    now->shared = least(now->resident, text_number(&at, 10));
    return bytes;
}
