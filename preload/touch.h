// In whose code each page first became resident: the second axis. The kernel tells every page fault of a thread in a
// ring; whether there were any is one load. perf_event_open(2), PERF_COUNT_SW_PAGE_FAULTS.
#pragma once

#include "log.h"
#include "runtime.h"

// Whether touches are followed in this process.
extern bool touching;

// From now on, in this thread and in those that come. What is resident already was touched by the application.
void touch_begin(void);

// A thread begins.
void touch_thread(void);

// What the thread has touched since it was last asked, it touched inside this component.
void touch_settle(uint32_t component);

// The same of all threads, each inside the component that it is in.
void touch_settle_all(void);

// The helper's rest: it ends early to make room in rings that are half full.
void touch_wait(uint64_t ns);

// Ranges that are given back and ranges that move.
void touch_clear(uint64_t begin, uint64_t end);
void touch_move(uint64_t from, uint64_t to, uint64_t bytes);

// Who touched a resident page first; UNATTRIBUTED: it is not known. One fault may have brought it with its neighbours.
uint8_t toucher(uint64_t page);

// The process is a new one.
void touch_forget(void);
