// A library that is a component of its own, beside MPI.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct large {
    double values[9];
};

typedef long outer_callback(long);

long outer_sum(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, double x, double y, ...);
struct large outer_large(struct large given, double times);
long double outer_long(long double value);
int outer_rank(void);
void outer_reduce(int times);

#ifdef __cplusplus
}
#endif
