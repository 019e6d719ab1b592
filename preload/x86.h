// x86-64 instructions: how long one is, and what of it depends on where it stands.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum x86_kind {
    X86_PLAIN,
    X86_RELATIVE,      // an operand in memory, relative to the end of the instruction
    X86_CALL_RELATIVE, // calls what such an operand points to
    X86_CALL_INDIRECT, // calls what a register or memory points to
    X86_CALL,
    X86_CONDITION, // jcc
    X86_LOOP,      // loop, jrcxz and xbegin: branches that have no wider form
    X86_JUMP,
    X86_JUMP_RELATIVE, // from here on nothing runs on into what follows
    X86_JUMP_INDIRECT,
    X86_RETURN,
    X86_TRAP, // ud2
};

struct x86 {
    enum x86_kind kind;
    uint8_t bytes;
    uint8_t opcode;       // where its opcode (the last byte of it) is
    uint8_t displacement; // where the displacement is, if it is relative
    uint8_t wide;         // the displacement has 4 bytes, not 1
    uint64_t target;      // of what is relative
};

enum { X86_LONGEST = 15, X86_MOVED = 32 };

// False for what is not known.
bool x86_decode(const uint8_t *code, struct x86 *instruction);

// Writes an instruction anew for another place; returns the bytes written, at most X86_MOVED. 0: it cannot be moved
// there.
size_t x86_move(const uint8_t *code, const struct x86 *instruction, uint8_t *to);

// Whether the function of so many bytes may branch behind its first byte, but before its first `end`.
bool x86_branches_into(const uint8_t *code, size_t bytes, size_t end);
