// A library to be opened at run time, most of which is zeroes.
#include <stddef.h>

enum { BYTES = 24 << 20 };
char *library_zeroes(void);
char *library_values(void);

static char zeroes[BYTES];
static char values[5 << 20] = {1, 2, 3};

char *library_zeroes(void) {
    return zeroes;
}

char *library_values(void) {
    return values;
}
