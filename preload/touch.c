#include "touch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>

#include "arena.h"
#include "lock.h"
#include "objects.h"
#include "owners.h"
#include "pagemap.h"
#include "shadow.h"
#include "smaps.h"
#include "space.h"
#include "sys.h"
#include "text.h"

// A ring of MOST holds what a thread touches within some 50 ms. A user without rights may lock half of that in all
// (kernel.perf_event_mlock_kb): then rings are smaller, as long as there is room.
enum { MOST = 1 << 20, LEAST = 32 << 10, RINGS = 1024, AROUND = 16, HUGE = 512 };

// The highest kernel.perf_event_paranoid at which users without rights may follow their own faults in user space.
enum { PARANOID_OF_USERS = 2 };

struct ring {
    struct lock lock;
    int file;
    uint64_t bytes; // of its data
    struct perf_event_mmap_page *pages;
    struct thread *thread; // NULL: it has ended
};

bool touching;
static struct ring rings[RINGS];
static uint32_t ring_count, unseen_threads;
static uint64_t lost;
static int wakes = -1; // of rings that are half full
static bool without_kernel;
static pthread_key_t at_end;
static int (*set_specific)(pthread_key_t, const void *);

static int open_event(bool exclude_kernel, uint32_t wake_at) {
    struct perf_event_attr event = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof event,
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_ADDR,
        .exclude_kernel = exclude_kernel,
        .exclude_hv = 1,
        .watermark = 1,
        .wakeup_watermark = wake_at,
    };
    return sys(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void touched(uint64_t address, uint8_t owner) {
    struct region *region = region_made(address);
    uint8_t *touch = region ? &region->touch[in_region(address) / PAGE] : NULL;
    // A page that is written after it was read faults twice.
    if (touch && !*touch)
        *touch = owner;
}

// With the ring's lock held.
static void drain(struct ring *ring, uint32_t component) {
    const char *data = (const char *)ring->pages + PAGE;
    uint64_t head = __atomic_load_n(&ring->pages->data_head, __ATOMIC_ACQUIRE), tail = ring->pages->data_tail;
    uint8_t owner = owner_of(component, 0);
    while (tail < head) {
        // Entries are of 16 and 24 bytes and never cut at the ring's end in the middle of a word.
        struct perf_event_header entry;
        memcpy(&entry, data + tail % ring->bytes, sizeof entry);
        uint64_t word = *(const uint64_t *)(data + (tail + 8) % ring->bytes);
        if (entry.type == PERF_RECORD_SAMPLE)
            touched(word, owner);
        else if (entry.type == PERF_RECORD_LOST)
            lost += *(const uint64_t *)(data + (tail + 16) % ring->bytes);
        tail += entry.size ? entry.size : head - tail;
    }
    __atomic_store_n(&ring->pages->data_tail, tail, __ATOMIC_RELEASE);
}

static struct ring *own_ring(void) {
    return self.ring ? &rings[self.ring - 1] : NULL;
}

void touch_settle(uint32_t component) {
    struct ring *ring = own_ring();
    if (!ring)
        return;
    lock_take(&ring->lock);
    drain(ring, component);
    self.faults_seen = *self.faults;
    lock_release(&ring->lock);
}

static void thread_ends(void *given) {
    struct ring *ring = given;
    touch_settle(self.inside);
    self.ring = 0;
    self.faults = NULL;
    lock_take(&ring->lock);
    ring->thread = NULL;
    sys(SYS_munmap, ring->pages, PAGE + ring->bytes);
    sys(SYS_close, ring->file);
    ring->pages = NULL;
    lock_release(&ring->lock);
}

static bool open_ring(struct ring *ring) {
    for (uint64_t bytes = MOST; bytes >= LEAST; bytes /= 2) {
        int file = open_event(without_kernel, bytes / 2);
        long pages = sys(SYS_mmap, own_place(PAGE + bytes), PAGE + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (sys_failed(pages)) {
            sys(SYS_close, file);
            continue;
        }
        ring->file = file;
        ring->bytes = bytes;
        ring->pages = (struct perf_event_mmap_page *)pages;
        ring->thread = &self;
        struct epoll_event wake = {.events = EPOLLIN, .data.ptr = ring};
        sys(SYS_epoll_ctl, wakes, EPOLL_CTL_ADD, file, &wake);
        return true;
    }
    return false;
}

static uint32_t free_ring(void) {
    for (uint32_t i = 0; i < __atomic_load_n(&ring_count, __ATOMIC_ACQUIRE) && i < RINGS; i++)
        if (!rings[i].pages && lock_try(&rings[i].lock))
            return i;
    uint32_t next = __atomic_fetch_add(&ring_count, 1, __ATOMIC_ACQ_REL);
    if (next < RINGS)
        lock_take(&rings[next].lock);
    return next;
}

void touch_thread(void) {
    if (!touching)
        return;
    uint32_t index = free_ring();
    bool opened = index < RINGS && open_ring(&rings[index]);
    if (index < RINGS)
        lock_release(&rings[index].lock);
    if (!opened) {
        if (!__atomic_fetch_add(&unseen_threads, 1, __ATOMIC_RELAXED))
            log_note(
                "by touch: the kernel lets bursar follow no more than %u threads (kernel.perf_event_mlock_kb); what "
                "others touch first is unattributed",
                index < RINGS ? index : RINGS);
        return;
    }
    self.ring = index + 1;
    self.faults_seen = 0;
    self.faults = (uint64_t *)&rings[index].pages->data_head;
    set_specific(at_end, &rings[index]);
}

// What is resident before the program's own code runs, the loader brought for it.
static void known_page(uint64_t page, uint64_t entry, void *context) {
    (void)entry;
    (void)context;
    touched(page, owner_of(APPLICATION, 0));
}

static void known_from_the_start(const struct mapping *mapping) {
    if (mapping->rss)
        pagemap_present(mapping->begin, mapping->end, known_page, NULL);
}

// Why there are no events. The kernel's setting is named only where it is the reason: for it the kernel answers EACCES,
// a container's filter EPERM or ENOSYS.
static void note_refusal(int error) {
    char text[16] = "";
    const char *at = text;
    text_of_file("/proc/sys/kernel/perf_event_paranoid", text, sizeof text);
    uint32_t level = text_number(&at, 10);
    if (error == -EACCES && level > PARANOID_OF_USERS)
        log_note(
            "by touch: this process may not follow its own page faults: kernel.perf_event_paranoid is %u, above %u",
            level, (uint32_t)PARANOID_OF_USERS);
    else if (error < 0)
        log_note("by touch: this process may not follow its own page faults: perf_event_open fails with error %u",
                 (uint32_t)-error);
    else
        log_note("by touch: this process cannot follow its own page faults: epoll_create1 or pthread_key_create fails");
}

void touch_begin(void) {
    int (*key_create)(pthread_key_t *, void (*)(void *)) = next_symbol("pthread_key_create");
    set_specific = next_symbol("pthread_setspecific");
    int file = open_event(false, LEAST);
    without_kernel = file < 0;
    if (without_kernel)
        file = open_event(true, LEAST);
    wakes = sys(SYS_epoll_create1, EPOLL_CLOEXEC);
    if (file < 0 || wakes < 0 || !key_create || !set_specific || key_create(&at_end, thread_ends)) {
        note_refusal(file);
        return;
    }
    sys(SYS_close, file);
    log_note("by touch: %s",
             without_kernel ? "page-fault events of user space; pages that system calls touch first are unattributed"
                            : "page-fault events");
    touching = true;
    if (pagemap_open())
        smaps("/proc/thread-self/smaps", known_from_the_start);
    pagemap_close();
    touch_thread();
}

// Whoever changes components settles first: so what is in the ring was touched inside the one that the thread is in.
static void settle_for(struct ring *ring) {
    lock_take(&ring->lock);
    if (ring->pages && ring->thread)
        drain(ring, ring->thread->inside);
    lock_release(&ring->lock);
}

void touch_wait(uint64_t ns) {
    struct epoll_event ready[16];
    uint64_t ms = ns / 1000000 + 1;
    int count = sys(SYS_epoll_pwait, wakes, ready, 16, ms, 0, 8);
    for (int i = 0; i < count; i++)
        settle_for(ready[i].data.ptr);
}

void touch_settle_all(void) {
    for (uint32_t i = 0; touching && i < ring_count && i < RINGS; i++)
        settle_for(&rings[i]);
}

static uint8_t *touch_of(uint64_t page) {
    struct region *region = region_of(page);
    return region ? &region->touch[in_region(page) / PAGE] : NULL;
}

void touch_clear(uint64_t begin, uint64_t end) {
    // What was touched there so far, must not be told afterwards.
    touch_settle(self.inside);
    for (uint64_t page = begin & -PAGE; touching && page < end; page += PAGE) {
        uint8_t *touch = touch_of(page);
        if (touch)
            *touch = 0;
        else
            page |= (1UL << REGION_SHIFT) - PAGE;
    }
}

void touch_move(uint64_t from, uint64_t to, uint64_t bytes) {
    touch_settle(self.inside);
    for (uint64_t at = 0; touching && from != to && at < bytes; at += PAGE) {
        uint8_t *touch = touch_of(from + at);
        if (touch && *touch) {
            touched(to + at, *touch);
            *touch = 0;
        }
    }
}

static uint8_t within(uint8_t *touch, uint64_t page, uint64_t window) {
    touch -= page / PAGE % window;
    for (uint64_t i = 0; i < window; i++)
        if (touch[i])
            return touch[i];
    return UNATTRIBUTED;
}

uint8_t toucher(uint64_t page) {
    uint8_t *touch = touch_of(page);
    if (!touch)
        return UNATTRIBUTED;
    if (!*touch)
        *touch = within(touch, page, AROUND);
    if (!*touch)
        *touch = within(touch, page, HUGE);
    return *touch;
}

void touch_forget(void) {
    if (!touching)
        return;
    sys(SYS_close, wakes);
    wakes = sys(SYS_epoll_create1, EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < RINGS && i < ring_count; i++) {
        if (rings[i].pages)
            sys(SYS_close, rings[i].file);
        rings[i] = (struct ring){0};
    }
    ring_count = 0;
    self.ring = 0;
    self.faults = NULL;
    touch_thread();
}
