// The little of text that is needed, without libc's locale and memory.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// %s and %u (64 bits when written %lu); cut at the end of the buffer.
void text_format(char *buffer, size_t bytes, const char *format, ...);
void text_format_list(char *buffer, size_t bytes, const char *format, va_list arguments);

// A number in base 10 or 16; `*text` then stands behind it.
uint64_t text_number(const char **text, int base);

// A whole file, ended by 0; the bytes read, or -errno.
long text_of_file(const char *path, char *buffer, size_t bytes);

// Behind the last slash.
const char *text_base(const char *path);
