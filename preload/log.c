#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "arena.h"
#include "descriptor.h"
#include "lock.h"
#include "runtime.h"
#include "text.h"

enum { HEAD = LOG_FRAME_BYTES, ENTRY = 256 << 10 };

struct lock log_lock;
static char path[4096];
static int file = -1;
static bool ready, full;
static uint64_t device, inode;
static char *entry; // the frame that is being made
static size_t entry_bytes;
static uint64_t began_ns, written, limit = UINT64_MAX;
static uint32_t crc_table[256];

static uint32_t crc32(const char *data, size_t bytes) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++)
        crc = crc_table[(crc ^ (uint8_t)data[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

static long open_file(int flags) {
    long low = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | flags, 0644);
    if (sys_failed(low))
        return low;
    file = out_of_the_way((int)low);
    struct stat found;
    sys(SYS_fstat, file, &found);
    device = found.st_dev;
    inode = found.st_ino;
    return 0;
}

// Programs close what they have not opened, and the number may be somebody else's by now.
static bool still_ours(void) {
    struct stat found;
    return file >= 0 && !sys_failed(sys(SYS_fstat, file, &found)) && found.st_dev == device && found.st_ino == inode;
}

bool log_open(const char *directory, const char *name) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        crc_table[i] = crc;
    }
    if (!entry && !(entry = arena_pages(ENTRY)))
        return false;
    written = 0;
    full = false;
    began_ns = now_ns();
    // To go beyond it is a signal.
    struct rlimit files = {0};
    sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
    if (files.rlim_cur < ENTRY)
        return false;
    if (files.rlim_cur - PAGE < limit)
        limit = files.rlim_cur - PAGE;
    // A process that has called exec has had a log before.
    for (uint32_t life = 0; life < 1000; life++) {
        text_format(path, sizeof path, life ? "%s/%s.%u.log" : "%s/%s.log", directory, name, life);
        long opened = open_file(O_CREAT | O_EXCL);
        if (opened == -EEXIST)
            continue;
        if (sys_failed(opened))
            return false;
        char head[LOG_HEADER_BYTES] = LOG_MAGIC;
        head[sizeof LOG_MAGIC - 1] = LOG_VERSION;
        written = sizeof head;
        return ready = sys(SYS_write, file, head, sizeof head) == sizeof head;
    }
    return false;
}

static void append(const void *data, size_t bytes) {
    if (ready && bytes <= ENTRY - entry_bytes) {
        memcpy(entry + entry_bytes, data, bytes);
        entry_bytes += bytes;
    }
}

void log_forget(void) {
    ready = false;
    if (still_ours())
        sys(SYS_close, file);
    file = -1;
}

void log_begin(enum log_entry entry_kind) {
    const char kind = (char)entry_kind;
    lock_take(&log_lock);
    entry_bytes = HEAD;
    append(&kind, 1);
}

void log_number(uint64_t value) {
    uint8_t digits[10];
    size_t count = 0;
    do {
        digits[count++] = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
    } while (value >>= 7);
    append(digits, count);
}

void log_string(const char *text) {
    size_t bytes = strnlen(text, 4096);
    log_number(bytes);
    append(text, bytes);
}

void log_reason(enum log_reason reason) {
#define TEXT(name, text) [REASON_##name] = text,
    static const char *const texts[] = {LOG_REASONS(TEXT)};
#undef TEXT
    log_string(texts[reason]);
}

void log_time(void) {
    log_number((now_ns() - began_ns) / 1000);
}

static void write_entry(void) {
    uint32_t length = entry_bytes - HEAD, crc = crc32(entry + HEAD, length);
    memcpy(entry, &length, 4);
    memcpy(entry + 4, &crc, 4);
    // What is written in part, on a full disk, is a frame that is cut: readers stop there.
    if ((still_ours() || !open_file(0)) && sys(SYS_write, file, entry, entry_bytes) == (long)entry_bytes)
        written += entry_bytes;
    else
        full = true;
}

void log_end(void) {
    if (!ready || full) {
        lock_release(&log_lock);
        return;
    }
    if (written + entry_bytes <= limit) {
        write_entry();
    } else {
        full = true;
        entry_bytes = HEAD;
        entry[entry_bytes++] = ENTRY_NOTE;
        log_string("the log came to its limit; what followed is not told (--log-limit)");
        write_entry();
    }
    lock_release(&log_lock);
}

void log_note(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    text_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    log_begin(ENTRY_NOTE);
    log_string(text);
    log_end();
}

bool log_is_open(void) {
    return ready;
}

const char *log_path(void) {
    return path;
}

uint64_t log_bytes(void) {
    return written;
}

void log_limit(uint64_t bytes) {
    limit = bytes;
}
