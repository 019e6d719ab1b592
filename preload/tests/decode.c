// The decoder against objdump, on every instruction of the files given: each must have the same length and the same
// target, or be refused. And each that can be moved must, when moved, be what it was.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../x86.h"

struct counts {
    unsigned long all, refused, wrong;
};

// "  401126:\t48 8d 05 d3 0e 00 00 \tlea    0xed3(%rip),%rax        # 402000 <x>"
static int parse(char *line, unsigned long *address, unsigned char *bytes, char **text) {
    char *end;
    *address = strtoul(line, &end, 16);
    if (end == line || *end != ':')
        return 0;
    int count = 0;
    // Two digits and a space each, until there are more spaces or a tab.
    for (char *at = end + 2; count < X86_LONGEST && at[0] > ' ' && at[1] > ' ' && at[2] == ' '; at += 3)
        bytes[count++] = strtoul(at, NULL, 16);
    *text = strchr(line, ':') + 1;
    *text = strchr(*text + 1, '\t');
    return *text ? count : 0;
}

static unsigned long target_of(const char *text) {
    const char *comment = strstr(text, "# ");
    if (comment)
        return strtoul(comment + 2, NULL, 16);
    const char *operand = strrchr(text, '<');
    if (!operand)
        return 0;
    for (operand--; operand[-1] != ' ' && operand[-1] != ','; operand--)
        ;
    return strtoul(operand, NULL, 16);
}

// Moved next to where it stands, it must have the same kind and the same target.
static int moves(const unsigned char *code, const struct x86 *instruction, unsigned char *to) {
    size_t bytes = x86_move(code, instruction, to);
    if (!bytes)
        return instruction->kind == X86_LOOP || instruction->kind == X86_CALL_INDIRECT;
    // A call becomes a jump, with some bytes before it and the address that it returns to behind it.
    bool call = instruction->kind == X86_CALL || instruction->kind == X86_CALL_RELATIVE;
    size_t before = call ? 17 : 0, behind = call ? 8 : 0;
    struct x86 moved;
    if (!x86_decode(to + before, &moved) || before + moved.bytes + behind != bytes)
        return 0;
    return !instruction->displacement || moved.target == instruction->target;
}

static struct counts compare(const char *path, unsigned char *code) {
    struct counts counts = {0};
    char command[4200], line[4096];
    snprintf(command, sizeof command, "objdump -dw '%s'", path);
    FILE *listing = popen(command, "r");
    while (fgets(line, sizeof line, listing)) {
        unsigned long address;
        char *text;
        memset(code, 0x90, 32);
        int count = parse(line, &address, code, &text);
        // objdump shows a prefix that it does not understand as an instruction, and the wait of `fstcw` as part of it.
        if (!count || strstr(text, "(bad)") || code[0] == 0x9b)
            continue;
        struct x86 instruction;
        counts.all++;
        if (!x86_decode(code, &instruction)) {
            if (counts.refused++ < 20)
                printf("refused: %s", line);
            continue;
        }
        unsigned long target = target_of(text), found = instruction.target - (unsigned long)code + address;
        if (instruction.bytes != count || (instruction.displacement && target && found != target) ||
            !moves(code, &instruction, code + 4096)) {
            if (counts.wrong++ < 20)
                printf("%u bytes, kind %d, target %lx: %s", instruction.bytes, instruction.kind, found, line);
        }
    }
    pclose(listing);
    return counts;
}

int main(int count, char **paths) {
    unsigned char *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct counts sum = {0};
    for (int i = 1; i < count; i++) {
        struct counts counts = compare(paths[i], code);
        printf("%s: %lu instructions, %lu refused, %lu wrong\n", paths[i], counts.all, counts.refused, counts.wrong);
        sum.all += counts.all;
        sum.refused += counts.refused;
        sum.wrong += counts.wrong;
    }
    return sum.wrong || sum.all < 100000 || sum.refused * 10000 > sum.all;
}
