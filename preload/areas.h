// Parts of the address space whose memory is looked at and populated ahead by the helper, while the program may give
// them back at any time: what is gone must not be advised, as something else may be there by then. Without locks.
#pragma once

#include "abi.h"
#include "runtime.h"

enum { AREAS = 1024, WATCHED = 256, REGION = REGION_BYTES };

struct area {
    uint32_t life; // odd: it is there; another one each time the place is used
    enum advice_kind kind;
    uint32_t size_class;
    bool alike; // such are known to be filled in order
    uint64_t ordinal;
    uint64_t begin;
    uint64_t end;
    uint64_t eager_end; // to be populated as far as that at once
    uint64_t origin;    // where the mapping began that it is a part of
    const char *object; // whose it is; NULL: nobody's
};

extern struct area areas[AREAS];
extern uint32_t areas_used; // places that have ever been
extern uint32_t areas_most; // that there may be: as many as are watched, or all where nobody watches

// Takes it in; its place, or -1: there is none left.
int areas_add(struct area area);

// It ends there from now on.
void areas_resize(int place, uint64_t end);

// What is there is about to be given back, or to be something else: when this returns, the helper has left it, and will
// not come again. What is beside it, from so many bytes on, are areas of their own.
void areas_remove(uint64_t begin, uint64_t end, uint64_t least_bytes);

// What is there is to be looked at as if it were new.
void areas_renew(uint64_t begin, uint64_t end);

// For the helper: between these two, what is in the range is that area's. False: it is gone.
bool areas_enter(int place, uint32_t life, uint64_t begin, uint64_t end);
void areas_leave(void);

// In the child of a fork there is no helper, and nothing is known.
void areas_forget(void);
