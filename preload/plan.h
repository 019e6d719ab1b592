// What the launcher has decided, and for which memory: see abi.h.
#pragma once

#include "abi.h"
#include "runtime.h"

enum { PLAN_ANY = ~0U };

struct rule {
    enum advice_kind kind;
    enum advice_action action;
    uint32_t size_class; // PLAN_ANY: of any
    uint64_t ordinal;    // UINT64_MAX: any
    uint64_t from, to;   // UINT64_MAX: to the end
    uint64_t cost_ns, benefit_ns;
    const char *object; // NAME:BUILD-ID, or -
    bool matched;       // something
};

struct plan {
    uint64_t ahead, dense, least;
    uint64_t observes; // 1: it is told what is touched, and no more
    uint64_t base_fault_ns, populate_ns;
    struct rule *rules;     // of this program
    uint32_t count, others; // which are of other programs
    uint32_t unreadable;    // lines that begin as a rule and are none
};

extern struct plan plan;

// Reads it from the run's directory, for an executable of this build-id; false: it cannot be read.
bool plan_read(const char *directory, const char *build_id);

// The first rule from `*index` on that holds for a mapping, which is then behind it; NULL: none.
struct rule *plan_next(uint32_t *index, enum advice_kind kind, uint32_t size_class, uint64_t ordinal);
