#include "text.h"

#include <stdbool.h>
#include <string.h>

#include "descriptor.h"
#include "sys.h"

void text_format_list(char *buffer, size_t bytes, const char *format, va_list arguments) {
    char *out = buffer, *end = buffer + bytes - 1;
    for (; *format && out < end; format++) {
        char digits[24];
        const char *piece = digits;
        size_t length = 1;
        digits[0] = *format;
        if (*format == '%') {
            bool wide = format[1] == 'l';
            format += 1 + wide;
            if (*format == 's') {
                piece = va_arg(arguments, const char *);
                length = strlen(piece);
            } else {
                uint64_t value = wide ? va_arg(arguments, uint64_t) : va_arg(arguments, uint32_t);
                char *digit = digits + sizeof digits;
                do {
                    *--digit = '0' + value % 10;
                } while (value /= 10);
                piece = digit;
                length = digits + sizeof digits - digit;
            }
        }
        if (length > (size_t)(end - out))
            length = end - out;
        memcpy(out, piece, length);
        out += length;
    }
    *out = 0;
}

void text_format(char *buffer, size_t bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_format_list(buffer, bytes, format, arguments);
    va_end(arguments);
}

uint64_t text_number(const char **text, int base) {
    uint64_t value = 0;
    for (;; ++*text) {
        char c = **text;
        int digit = c >= '0' && c <= '9' ? c - '0' : base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10 : base;
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

long text_of_file(const char *path, char *buffer, size_t bytes) {
    int file = open_out_of_the_way(path);
    if (file < 0)
        return file;
    long total = 0, got;
    while ((size_t)total + 1 < bytes && (got = sys(SYS_read, file, buffer + total, bytes - 1 - total)) > 0)
        total += got;
    sys(SYS_close, file);
    buffer[total] = 0;
    return total;
}

const char *text_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
