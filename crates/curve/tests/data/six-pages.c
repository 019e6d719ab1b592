/* Goes three times over six pages. What lackey recorded of it is in six-pages.lackey:
 *   cc -O1 -nostdlib -static -o six-pages six-pages.c
 *   valgrind --tool=lackey --trace-mem=yes --log-file=six-pages.lackey ./six-pages */
static char pages[6][4096];

void _start(void) {
    for (int round = 0; round < 3; round++)
        for (int page = 0; page < 6; page++) {
            volatile char *byte = &pages[page][64];
            *byte += 1;
        }
    __asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");
}
