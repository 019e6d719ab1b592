/* What the walker of page tables and its reader tell each other. Mirrored in linux::pages::tables, byte for byte. */
#ifndef BURSAR_PAGES_H
#define BURSAR_PAGES_H

/* Addresses looked at, or regions listed, in one run. */
#define MOST_ADDRESSES 32768
#define ENTRIES 512

/* What is at an address, or in a region of 2 MiB. */
#define STATE_MAPPED 1
#define STATE_ACCESSED 2
#define STATE_HUGE 4 /* one entry for 2 MiB */
#define STATE_AWAY 8 /* swapped out or being moved */

/* Processes whose pages are told when they come back from swap, and room for what is not taken in yet. */
#define MOST_FOLLOWED 65536
#define RETURNED_BYTES (256 << 10)

/* A page that is to come back. */
struct returned {
    u64 address;
    u32 pid; /* the reader's number for the process */
    u32 pad;
};

/* What DAMON has found accessed, and room for what is not taken in yet. */
#define ACCESSED_BYTES (256 << 10)
#define MOST_TARGETS 64

struct accessed {
    u64 start;
    u64 end;
    u64 target; /* the number that the process has with DAMON's thread */
};

struct window {
    /* Of the machine, once found. */
    u64 base;   /* where the kernel maps all memory */
    u64 memory; /* end of physical memory */
    u32 levels; /* of page tables */
    u32 count;  /* in: addresses to look at; out: regions listed */
    /* Of one task. */
    u64 task;  /* where it is */
    u64 start; /* when it began: tells it from others in its place */
    /* Of one run. */
    u64 cursor; /* in: where listing begins; out: where it would go on */
    u64 end;
    u64 frame;    /* in: the frame of the page at `cursor`, by which the base is found */
    u64 space;    /* out: names the address space; 0: the task is gone, or has none */
    u64 accessed; /* out: pages counted */
    /* Of what comes back. */
    u64 level; /* told is one page of 2^level */
    u64 lost;  /* out: pages that found no room */
    /* Of what DAMON tells. */
    u64 targets;       /* told are those of this mask */
    u32 thread;        /* of DAMON's threads this one is asked; 0: none */
    u32 pid_namespace; /* the reader's; 0: the first one, in which the kernel counts */
    u64 addresses[MOST_ADDRESSES];
    u8 states[MOST_ADDRESSES];
    /* The program's own: a table that is read as a whole. */
    u64 table[ENTRIES];
};

#endif
