// Entries of all kinds, patched: each must give what it gave, and be seen. Entries that cannot be must be left as they
// are.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../arena.h"
#include "../objects.h"
#include "../patch.h"

// Of preload/sys.h; nothing here is in a sandbox.
bool sandboxed;

static int failures;
static unsigned long seen;
static void *moved;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                                  \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

// Each is called with 20 and gives 42, but for `loops`, which counts down and gives 0.
__asm__(".text\n"
        ".p2align 4\n plain: push %rbx; mov %rdi, %rbx; lea 22(%rbx), %rax; pop %rbx; ret\n"
        ".p2align 4\n memory: mov number(%rip), %eax; add %edi, %eax; ret\n"
        ".p2align 4\n compares: cmpl $0, number(%rip); je 1f; lea 22(%rdi), %eax; ret; 1: xor %eax, %eax; ret\n"
        ".p2align 4\n branches: cmp $20, %edi; jne 1f; mov $42, %eax; ret; 1: xor %eax, %eax; ret\n"
        ".p2align 4\n calls: push %rbx; mov %rdi, %rbx; call twenty_two; add %ebx, %eax; pop %rbx; ret\n"
        ".p2align 4\n calls_memory: call *pointer(%rip); add %edi, %eax; ret\n"
        ".p2align 4\n jumps: jmp plain\n"
        ".p2align 4\n jumps_short: jmp near_it\n .p2align 4\n near_it: lea 22(%rdi), %eax; ret\n"
        ".p2align 4\n endbr: endbr64; lea 22(%rdi), %eax; ret\n"
        ".p2align 4\n wide: movabs $22, %rax; add %rdi, %rax; ret\n"
        ".p2align 4\n unaligned_code: nop; nop; nop; nop; nop\n"
        "    unaligned: sub $8, %rsp; lea 22(%rdi), %eax; add $8, %rsp; ret\n"
        ".p2align 4\n small: ret\n"
        ".p2align 4\n twenty_two: mov $22, %eax; ret\n"
        ".p2align 4\n loops: dec %edi; 1: nop; dec %edi; jg 1b; xor %eax, %eax; ret\n"
        ".p2align 4\n traps: int3; nop; nop; nop; nop; ret\n"
        ".p2align 4\n counts_down: jrcxz 1f; nop; nop; nop; 1: ret\n"
        ".p2align 4; nop\n returns: ret; push %rbx; pop %rbx; mov %rdi, %rax; ret\n"
        ".data\n number: .long 22\n pointer: .quad twenty_two\n .text\n"
        // As `calls_enter` does: counts, and goes on.
        "counted: incq seen(%rip); jmp *moved(%rip)\n");

extern int plain(int), memory(int), compares(int), branches(int), calls(int), calls_memory(int), jumps(int),
    jumps_short(int), endbr(int), wide(int), unaligned(int), small(int), loops(int), traps(int), counts_down(int),
    returns(int);
extern void counted(void);

// An arena for a test: what the runtime's does, but for its bookkeeping.
void *arena_near(uint64_t address, size_t bytes) {
    void *pages = MAP_FAILED;
    for (uint64_t away = 1 << 20; pages == MAP_FAILED && away < 1 << 30; away += 1 << 20)
        pages = mmap((void *)((address & -4096UL) + away), bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void *arena_pages(size_t bytes) {
    return arena_near(0, bytes);
}

static uint64_t sealed[64][2];
static int sealed_count;

bool arena_seal(void *pages, size_t bytes) {
    sealed[sealed_count][0] = (uint64_t)pages;
    sealed[sealed_count++][1] = (uint64_t)pages + bytes;
    return !mprotect(pages, bytes, PROT_READ | PROT_EXEC);
}

bool arena_has(uint64_t address) {
    for (int i = 0; i < sealed_count; i++)
        if (address >= sealed[i][0] && address < sealed[i][1])
            return true;
    return false;
}

bool object_code(uint64_t address, uint64_t *begin, uint64_t *end) {
    (void)address;
    (void)begin;
    (void)end;
    return false;
}

static const char *patch_one(int (*entry)(int), size_t bytes) {
    patch_begin();
    const char *why = patch_with((void *)entry, bytes, (void *)counted, NULL, &moved);
    const char *later = patch_done();
    return why ? why : later;
}

static void takes(const char *name, int (*entry)(int)) {
    seen = 0;
    const char *why = patch_one(entry, 16);
    if (why)
        printf("%s: %s\n", name, why);
    CHECK(!why);
    if (why)
        return;
    int given = entry(20);
    CHECK(patched((void *)entry));
    CHECK(seen == 1);
    if (given != 42)
        printf("%s gives %d\n", name, given);
    CHECK(given == 42);
}

static void refuses(int (*entry)(int), const char *expected) {
    char before[16];
    memcpy(before, (void *)entry, sizeof before);
    const char *why = patch_one(entry, 16);
    CHECK(why && !strcmp(why, expected));
    if (why && strcmp(why, expected))
        printf("  %s\n", why);
    CHECK(!memcmp(before, (void *)entry, sizeof before));
}

static int foreign(int value) {
    return value + 1000;
}

static void write_over(void *entry, const void *code, size_t bytes) {
    CHECK(!mprotect((void *)((uint64_t)entry & -4096UL), 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
    memcpy(entry, code, bytes);
}

// As Open MPI's memory patcher: `movabs $hook, %r11; jmp *%r11` over the entry, and later what was there before.
static void survives_other_patches(void) {
    seen = 0;
    uint8_t before[13], theirs[13] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
    void *hook = foreign;
    memcpy(theirs + 2, &hook, sizeof hook);
    memcpy(before, (void *)plain, sizeof before);
    write_over((void *)plain, theirs, sizeof theirs);
    CHECK(!patched((void *)plain));
    CHECK(plain(20) == 1020 && seen == 0);
    CHECK(!patch_one(plain, 16));
    CHECK(patched((void *)plain));
    CHECK(plain(20) == 1020 && seen == 1);
    // What was there before is our first patch: ours, then theirs.
    write_over((void *)plain, before, sizeof before);
    CHECK(patched((void *)plain));
    CHECK(plain(20) == 1020 && seen == 2);
}

static volatile bool running = true;

static void *runs(void *entry) {
    while (running)
        CHECK(((int (*)(int))entry)(20) == 42);
    return NULL;
}

// An entry whose five bytes do not lie in eight aligned ones, while another thread runs it. Its first instruction is as
// long as the jump.
__asm__(".text; .p2align 6; .skip 5, 0x90\n across: mov $22, %eax; add %edi, %eax; ret\n");
extern int across(int);

static void is_safe_while_others_run(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, runs, (void *)across);
    seen = 0;
    CHECK(!patch_one(across, 8));
    while (__atomic_load_n(&seen, __ATOMIC_RELAXED) < 1000)
        ;
    running = false;
    pthread_join(thread, NULL);
}

__asm__(".text; gives_r11: mov %r11, %rax; ret\n");
extern void gives_r11(void);

static void thunks_pass_r11(void) {
    char *thunks = patch_thunks((void *)gives_r11, &failures, 8);
    CHECK(thunks);
    for (int i = 0; thunks && i < THUNKS; i++)
        CHECK(((char *(*)(void))(thunks + i * THUNK))() == (char *)&failures + i * 8);
}

int main(void) {
    takes("jumps", jumps);
    takes("plain", plain);
    takes("memory", memory);
    takes("compares", compares);
    takes("branches", branches);
    takes("calls", calls);
    takes("calls_memory", calls_memory);
    takes("jumps_short", jumps_short);
    takes("endbr", endbr);
    takes("wide", wide);
    takes("unaligned", unaligned);
    seen = 0;
    CHECK(!patch_one(small, 1));
    small(0);
    CHECK(seen == 1);
    refuses(loops, "a branch into its first five bytes");
    refuses(traps, "a branch into its first five bytes");
    refuses(counts_down, "an instruction that cannot be moved");
    refuses(returns, "a return within five bytes");
    refuses(plain, "it is patched already");
    survives_other_patches();
    is_safe_while_others_run();
    thunks_pass_r11();
    printf("%s\n", failures ? "failed" : "passed");
    return failures != 0;
}
