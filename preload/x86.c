#include "x86.h"

#include <string.h>

// What follows an opcode. '-' is not known; 'm' a ModRM byte and what that asks for, 'b' the same and 1 byte, 'z' the
// same and 4 (2 with a prefix 66); '0' nothing, '1' 1 byte, '4' 4 bytes (2), 'v' 4, 8 or 2 as the registers are wide,
// 'a' an address of 8 bytes, '3' 3 bytes; 'j' a condition of 1 byte, 'k' of 4, 'l' a loop, 's' a jump of 1 byte, 'g' of
// 4, 'c' a call; 'r' returns, 'R' with 2 bytes, 'u' traps; 'G' the groups f6 and f7; 'C' the groups c6 and c7; 'P' 8f;
// 'F' ff.
static const char one_byte[256 + 1] = "mmmm14--mmmm14--" // 00
                                      "mmmm14--mmmm14--"
                                      "mmmm14--mmmm14--" // 20
                                      "mmmm14--mmmm14--"
                                      "----------------" // 40: REX
                                      "0000000000000000"
                                      "---m----4z1b0000" // 60
                                      "jjjjjjjjjjjjjjjj"
                                      "bz-bmmmmmmmmmmmP" // 80
                                      "0000000000-00000"
                                      "aaaa000014000000" // a0
                                      "11111111vvvvvvvv"
                                      "bbRr--CC30---1--" // c0
                                      "mmmm---0mmmmmmmm"
                                      "llll1111cg-s0000" // e0
                                      "----00GG000000mF";

static const char two_bytes[256 + 1] = "mmmm-00-00-u-m0-" // 0f 00
                                       "mmmmmmmmmmmmmmmm"
                                       "--------mmmmmmmm" // 20
                                       "000000-0--------"
                                       "mmmmmmmmmmmmmmmm" // 40
                                       "mmmmmmmmmmmmmmmm"
                                       "mmmmmmmmmmmmmmmm" // 60
                                       "bbbbmmm0----mmmm"
                                       "kkkkkkkkkkkkkkkk" // 80
                                       "mmmmmmmmmmmmmmmm"
                                       "000mbm--000mbmmm" // a0
                                       "mmmmmmmmmubmmmmm"
                                       "mmbmbbbm00000000" // c0
                                       "mmmmmmmmmmmmmmmm"
                                       "mmmmmmmmmmmmmmmm" // e0
                                       "mmmmmmmmmmmmmmm-";

// The prefixes of an instruction, and those that its encoding implies.
struct prefixes {
    bool narrow; // 66
    bool wide;   // REX.W
    bool short_addresses;
    bool vector; // VEX or EVEX: no branches, and 0f 77 alone is without operands
};

static char vector_form(uint8_t map, uint8_t opcode) {
    switch (map) {
    case 1:
        return opcode == 0x77 || two_bytes[opcode] == 'm' || two_bytes[opcode] == 'b' ? two_bytes[opcode] : '-';
    case 2:
    case 5:
    case 6:
        return 'm';
    case 3:
        return 'b';
    default:
        return '-';
    }
}

// Reads prefixes and opcode; `*at` then is the opcode's last byte.
static char form_of(const uint8_t *code, uint8_t *at, struct prefixes *prefixes) {
    for (;; ++*at) {
        uint8_t byte = code[*at];
        if (*at > 4)
            return '-';
        if (byte == 0x66)
            prefixes->narrow = true;
        else if (byte == 0x67)
            prefixes->short_addresses = true;
        else if (byte != 0x2e && byte != 0x3e && byte != 0x64 && byte != 0x65 && byte != 0xf0 && byte != 0xf2 &&
                 byte != 0xf3)
            break;
    }
    switch (code[*at]) {
    case 0xc5:
        *at += 2;
        return vector_form(1, code[*at]);
    case 0xc4:
        *at += 3;
        return vector_form(code[*at - 2] & 0x1f, code[*at]);
    case 0x62: {
        bool known = !(code[*at + 1] & 8) && code[*at + 2] & 4;
        *at += 4;
        return known ? vector_form(code[*at - 3] & 7, code[*at]) : '-';
    }
    }
    if (code[*at] >> 4 == 4)
        prefixes->wide = code[(*at)++] & 8;
    if (code[*at] != 0x0f)
        return one_byte[code[*at]];
    ++*at;
    if (code[*at] == 0x38 || code[*at] == 0x3a)
        return code[(*at)++] == 0x38 ? 'm' : 'b';
    return two_bytes[code[*at]];
}

// The bytes of ModRM, SIB and displacement.
static uint8_t operand_bytes(const uint8_t *modrm, bool *relative) {
    uint8_t mode = *modrm >> 6, base = *modrm & 7;
    if (mode == 3)
        return 1;
    uint8_t bytes = 1;
    if (base == 4) {
        base = modrm[1] & 7;
        bytes++;
    } else {
        *relative = mode == 0 && base == 5;
    }
    return bytes + (mode == 1 ? 1 : mode == 2 || base == 5 ? 4 : 0);
}

static int64_t displacement_of(const uint8_t *code, const struct x86 *instruction) {
    int32_t wide;
    memcpy(&wide, code + instruction->displacement, sizeof wide);
    return instruction->wide ? wide : (int8_t)code[instruction->displacement];
}

static bool branch(struct x86 *instruction, enum x86_kind kind, uint8_t bytes) {
    instruction->kind = kind;
    instruction->displacement = instruction->bytes;
    instruction->wide = bytes == 4;
    instruction->bytes += bytes;
    return true;
}

// Instructions whose operand says what they do.
static bool group(char form, const uint8_t *modrm, struct x86 *instruction, uint8_t immediate, bool relative) {
    uint8_t which = *modrm >> 3 & 7;
    switch (form) {
    case 'G':
        instruction->bytes += which > 1 ? 0 : modrm[-1] == 0xf6 ? 1 : immediate;
        return true;
    case 'C':
        instruction->bytes += modrm[-1] == 0xc6 ? 1 : immediate;
        return which == 0;
    case 'P':
        return which == 0;
    default:
        if (which == 2)
            instruction->kind = relative ? X86_CALL_RELATIVE : X86_CALL_INDIRECT;
        if (which == 4)
            instruction->kind = relative ? X86_JUMP_RELATIVE : X86_JUMP_INDIRECT;
        return which != 3 && which != 5 && which != 7;
    }
}

static bool measure(const uint8_t *code, char form, const struct prefixes *prefixes, struct x86 *instruction) {
    uint8_t immediate = prefixes->narrow && !prefixes->wide ? 2 : 4;
    const uint8_t *modrm = code + instruction->bytes;
    bool relative = false;
    // With 66 processors do not agree how long a branch is.
    if (strchr("jklsgcrR", form) && immediate == 2)
        return false;
    switch (form) {
    case 'm':
    case 'b':
    case 'z':
    case 'G':
    case 'C':
    case 'P':
    case 'F':
        instruction->bytes += operand_bytes(modrm, &relative);
        if (relative) {
            instruction->kind = X86_RELATIVE;
            instruction->displacement = instruction->bytes - 4;
            instruction->wide = true;
        }
        instruction->bytes += form == 'b' ? 1 : form == 'z' ? immediate : 0;
        if (strchr("GCPF", form) && !group(form, modrm, instruction, immediate, relative))
            return false;
        return !relative || !prefixes->short_addresses;
    case '0':
        return true;
    case '1':
        instruction->bytes++;
        return true;
    case '3':
        instruction->bytes += 3;
        return true;
    case '4':
        instruction->bytes += immediate;
        return true;
    case 'v':
        instruction->bytes += prefixes->wide ? 8 : immediate;
        return true;
    case 'a':
        instruction->bytes += 8;
        return !prefixes->short_addresses;
    case 'j':
        return branch(instruction, X86_CONDITION, 1);
    case 'k':
        return branch(instruction, X86_CONDITION, 4);
    case 'l':
        return branch(instruction, X86_LOOP, 1);
    case 's':
        return branch(instruction, X86_JUMP, 1);
    case 'g':
        return branch(instruction, X86_JUMP, 4);
    case 'c':
        return branch(instruction, X86_CALL, 4);
    case 'R':
        instruction->bytes += 2;
        instruction->kind = X86_RETURN;
        return true;
    case 'r':
        instruction->kind = X86_RETURN;
        return true;
    case 'u':
        instruction->kind = X86_TRAP;
        return true;
    default:
        return false;
    }
}

bool x86_decode(const uint8_t *code, struct x86 *instruction) {
    struct prefixes prefixes = {0};
    *instruction = (struct x86){.kind = X86_PLAIN};
    char form = form_of(code, &instruction->opcode, &prefixes);
    instruction->bytes = instruction->opcode + 1;
    if (form == '-' || !measure(code, form, &prefixes, instruction) || instruction->bytes > X86_LONGEST)
        return false;
    if (instruction->displacement)
        instruction->target = (uint64_t)code + instruction->bytes + displacement_of(code, instruction);
    return true;
}

static bool put_relative(uint8_t *to, uint64_t end, uint64_t target) {
    int64_t distance = target - end;
    int32_t displacement = distance;
    memcpy(to, &displacement, sizeof displacement);
    return distance == displacement;
}

// What is called returns to where it would have, so that whoever walks the stack finds its way: calls the next
// instruction but one, and pushes that address in place of its own. A push alone would upset the processor's count of
// calls and returns, and every return up to the program's own would be foreseen wrongly. No register or flag is
// touched.
static size_t put_call(uint8_t *to, bool relative, uint64_t back, uint64_t target) {
    uint8_t code[] = {0xe8, 1, 0, 0, 0, 0xcc, 0x48, 0x8d, 0x64, 0x24, 8, 0xff, 0x35, relative ? 6 : 5, 0, 0, 0};
    size_t bytes = sizeof code;
    memcpy(to, code, bytes);
    if (relative)
        to[bytes++] = 0xff;
    to[bytes++] = relative ? 0x25 : 0xe9;
    bytes += 4;
    bool reached = put_relative(to + bytes - 4, (uint64_t)to + bytes, target);
    memcpy(to + bytes, &back, sizeof back);
    return reached ? bytes + sizeof back : 0;
}

size_t x86_move(const uint8_t *code, const struct x86 *instruction, uint8_t *to) {
    uint64_t at = (uint64_t)to, next = (uint64_t)code + instruction->bytes;
    switch (instruction->kind) {
    case X86_CALL_INDIRECT:
    case X86_LOOP:
        return 0;
    case X86_CALL:
    case X86_CALL_RELATIVE:
        return put_call(to, instruction->kind == X86_CALL_RELATIVE, next, instruction->target);
    case X86_JUMP:
        to[0] = 0xe9;
        return put_relative(to + 1, at + 5, instruction->target) ? 5 : 0;
    case X86_CONDITION:
        to[0] = 0x0f;
        to[1] = 0x80 | (code[instruction->opcode] & 0x0f);
        return put_relative(to + 2, at + 6, instruction->target) ? 6 : 0;
    default:
        memcpy(to, code, instruction->bytes);
        if (instruction->displacement &&
            !put_relative(to + instruction->displacement, at + instruction->bytes, instruction->target))
            return 0;
        return instruction->bytes;
    }
}

static bool is_into(const uint8_t *code, uint64_t target, size_t end) {
    return target > (uint64_t)code && target < (uint64_t)code + end;
}

// A displacement of one byte comes from near: so far, all is decoded, and what is not known may be one. Those of four
// bytes are then looked for wherever they may stand, behind what may be a branch.
bool x86_branches_into(const uint8_t *code, size_t bytes, size_t end) {
    struct x86 instruction;
    size_t at = 0;
    for (; at < bytes && at < 128 + end; at += instruction.bytes) {
        if (!x86_decode(code + at, &instruction))
            return true;
        bool branches = instruction.kind >= X86_CALL && instruction.kind <= X86_JUMP;
        if (branches && is_into(code, instruction.target, end))
            return true;
    }
    for (; at + 4 < bytes; at++) {
        int32_t displacement;
        memcpy(&displacement, code + at + 1, sizeof displacement);
        bool may_branch = code[at] >> 1 == 0xe8 >> 1 || code[at] >> 4 == 8;
        if (may_branch && is_into(code, (uint64_t)code + at + 5 + displacement, end))
            return true;
    }
    return false;
}
