// Phases of a program that runs under `bursar attribute`: each begins with a mark. Without bursar a mark does nothing,
// and nothing needs to be linked.
//
//   #include <bursar.h>
//   BURSAR_MARK("assemble");
//
// Fortran: external bursar_mark; call bursar_mark('assemble') needs the library at run time; where it may be missing,
// use MPI_Pcontrol, which marks a phase too.
#ifndef BURSAR_H
#define BURSAR_H

#ifdef __cplusplus
extern "C" {
#endif

// A phase begins; its name ends at 255 bytes.
__attribute__((weak)) void bursar_mark(const char *phase);
__attribute__((weak)) void bursar_mark_(const char *phase, __SIZE_TYPE__ length);

#ifdef __cplusplus
}
#endif

#define BURSAR_MARK(phase)                                                                                             \
    do {                                                                                                               \
        if (bursar_mark)                                                                                               \
            bursar_mark(phase);                                                                                        \
    } while (0)

#endif
