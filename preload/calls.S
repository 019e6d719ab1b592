// The way into a library's function and out of it. Whoever walks the stack (exceptions, debuggers) passes through.

#if defined(__x86_64__)

// struct thread
#define INSIDE 0
#define FRAME 8
#define CALLS 16
#define FAULTS 24
#define FAULTS_SEEN 32
#define STACK 40

// struct function
#define MOVED 8
#define COMPONENT 16
#define NUMBER 18
#define FLAGS 20
#define FUNCTION 88

#define MPI 1
#define QUICK 256
#define QUICK_BY_STACK 128
#define QUICK_CODE 128 // bytes of each

// struct counters: behind the calls, of FUNCTIONS.
#define TICKS (65536 * 8)

// Of the frame, by rbp: above it the caller's r10, rax and return address.
#define SAVED_R10 8
#define SAVED_RAX 16
#define ENTRY 24
#define ARGUMENTS 32
#define THIS -8
#define OUTER_INSIDE -16
#define OUTER_FRAME -24
#define BEGAN -32

// MPI's functions have up to 22 arguments, 6 of them in registers; of others it is not known.
#define WORDS 32
#define WORDS_OF_MPI 16
#define LOCALS (32 + WORDS * 8)

// The arguments of a call, in the order in which C counts them, then those of floating point: 176 bytes.
    .macro save_arguments
    .set word, 0
    .irp register, %rdi, %rsi, %rdx, %rcx, %r8, %r9
    movq \register, word * 8(%rsp)
    .set word, word + 1
    .endr
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7
    movups %xmm\number, 48 + \number * 16(%rsp)
    .endr
    .endm

    .macro restore_arguments
    .set word, 0
    .irp register, %rdi, %rsi, %rdx, %rcx, %r8, %r9
    movq word * 8(%rsp), \register
    .set word, word + 1
    .endr
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7
    movups 48 + \number * 16(%rsp), %xmm\number
    .endr
    .endm

    .text
    .hidden calls_timed

// r11: the struct function. The call is inside a component from now on. What is already inside that component goes on as
// if nothing were there, unless it is what a longjmp or an exception left behind: then the stack is above its frame.
    .globl calls_enter
    .hidden calls_enter
    .type calls_enter, @function
    .p2align 6
calls_enter:
    .cfi_startproc
    pushq %rax
    .cfi_def_cfa_offset 16
    pushq %r10
    .cfi_def_cfa_offset 24
    movq self@gottpoff(%rip), %r10
    movzwl COMPONENT(%r11), %eax
    cmpw %ax, %fs:INSIDE(%r10)
    leaq 16(%rsp), %rax
    jne .Lenter
    cmpq %rax, %fs:FRAME(%r10)
    jbe .Lenter
    popq %r10
    .cfi_def_cfa_offset 16
    popq %rax
    .cfi_def_cfa_offset 8
    jmp *MOVED(%r11)

.Lenter:
    .cfi_def_cfa_offset 24
    pushq %rbp
    .cfi_def_cfa_offset 32
    .cfi_offset %rbp, -32
    movq %rsp, %rbp
    .cfi_def_cfa %rbp, 32
    subq $LOCALS, %rsp
    movq %r11, THIS(%rbp)
    cmpq %rax, %fs:FRAME(%r10)
    ja .Lsave_outer
.Lset_outer:
    movq $0, OUTER_INSIDE(%rbp)
    movq $0, OUTER_FRAME(%rbp)
.Lset:
    movq %rax, %fs:FRAME(%r10)
    movl COMPONENT(%r11), %eax // and the number
    movq %rax, %fs:INSIDE(%r10)
    movq %fs:FAULTS(%r10), %rax
    testq %rax, %rax
    jz .Lno_faults
    movq (%rax), %rax
    cmpq %rax, %fs:FAULTS_SEEN(%r10)
    jne .Lprepare
.Lno_faults:
    movzwl NUMBER(%r11), %eax
    movq %fs:CALLS(%r10), %r10
    testq %r10, %r10
    jz .Lprepare
    cmpw $0, FLAGS(%r11)
    jne .Lprepare
.Lcount:
    incq (%r10,%rax,8)
    cmpb $0, calls_timed(%rip)
    jne .Lbegin_time
.Ltimed:
    leaq ARGUMENTS + WORDS * 8 - 1(%rbp), %rax
    xorq %rbp, %rax
    testq $-4096, %rax
    jnz .Lnext_page
.Lcopy:
    cmpw $MPI, COMPONENT(%r11)
    je .Lcopy_few
    .set word, WORDS_OF_MPI
    .rept WORDS - WORDS_OF_MPI
    movq ARGUMENTS + word * 8(%rbp), %rax
    movq %rax, word * 8(%rsp)
    .set word, word + 1
    .endr
.Lcopy_few:
    .set word, 0
    .rept WORDS_OF_MPI
    movq ARGUMENTS + word * 8(%rbp), %rax
    movq %rax, word * 8(%rsp)
    .set word, word + 1
    .endr
.Lcall:
    movq SAVED_RAX(%rbp), %rax
    movq SAVED_R10(%rbp), %r10
    call *MOVED(%r11)

// rax, rdx, xmm0, xmm1 and the x87 stack are the result.
    movq THIS(%rbp), %r11
    movq self@gottpoff(%rip), %r10
    cmpw $0, FLAGS(%r11)
    jne .Lleft
    movq %fs:FAULTS(%r10), %rsi
    testq %rsi, %rsi
    jz .Lrestore
    movq (%rsi), %rsi
    cmpq %rsi, %fs:FAULTS_SEEN(%r10)
    jne .Lleft
.Lrestore:
    cmpb $0, calls_timed(%rip)
    jne .Lend_time
.Lrestore_inside:
    movq OUTER_INSIDE(%rbp), %rcx
    movq OUTER_FRAME(%rbp), %rsi
    movq %rcx, %fs:INSIDE(%r10)
    movq %rsi, %fs:FRAME(%r10)
    movq %rbp, %rsp
    popq %rbp
    .cfi_remember_state
    .cfi_restore %rbp
    .cfi_def_cfa %rsp, 24
    addq $16, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_restore_state

// Another component called, or a function that was called back; or one of `calls_quick` has left its frame.
.Lsave_outer:
    cmpw $0, %fs:INSIDE(%r10)
    je .Lset_outer
    movq %fs:INSIDE(%r10), %rax
    movq %rax, OUTER_INSIDE(%rbp)
    movq %fs:FRAME(%r10), %rax
    movq %rax, OUTER_FRAME(%rbp)
    leaq ENTRY(%rbp), %rax
    jmp .Lset

.Lprepare:
    subq $176, %rsp
    save_arguments
    movq %r11, %rdi
    movq %rsp, %rsi
    movq OUTER_INSIDE(%rbp), %rdx
    call calls_entering
    restore_arguments
    addq $176, %rsp
    movq THIS(%rbp), %r11
    movq self@gottpoff(%rip), %r10
    movq %fs:CALLS(%r10), %r10
    movzwl NUMBER(%r11), %eax
    jmp .Lcount

.Lbegin_time:
    movq %rdx, %r10
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    movq %rax, BEGAN(%rbp)
    movq %r10, %rdx
    jmp .Ltimed

// A processor whose clock is behind that of where the call began tells nothing.
.Lend_time:
    movq %rax, %rcx
    movq %rdx, %rsi
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    subq BEGAN(%rbp), %rax
    jb .Lother_clock
    movq THIS(%rbp), %r11
    movzwl NUMBER(%r11), %r8d
    movq %fs:CALLS(%r10), %r9
    addq %rax, TICKS(%r9,%r8,8)
.Lother_clock:
    movq %rcx, %rax
    movq %rsi, %rdx
    jmp .Lrestore_inside

// What would be copied ends on another page, which the stack may not have: it may be a small one of the program's own.
.Lnext_page:
    leaq ARGUMENTS + WORDS * 8 - 1(%rbp), %rax
    andq $-4096, %rax
    movq self@gottpoff(%rip), %r10
    cmpq %rax, %fs:STACK(%r10)
    je .Lcopy
    subq $176, %rsp
    save_arguments
    movq %rax, %rdi
    call calls_stack
    restore_arguments
    addq $176, %rsp
    movq THIS(%rbp), %r11
    testb %al, %al
    jnz .Lcopy
    leaq ARGUMENTS(%rbp), %r10
    negq %r10
    andl $4095, %r10d
    shrl $3, %r10d
.Lcopy_one:
    subl $1, %r10d
    js .Lcall
    movq ARGUMENTS(%rbp,%r10,8), %rax
    movq %rax, (%rsp,%r10,8)
    jmp .Lcopy_one

.Lleft:
    subq $48, %rsp
    movq %rax, (%rsp)
    movq %rdx, 8(%rsp)
    movups %xmm0, 16(%rsp)
    movups %xmm1, 32(%rsp)
    movq %r11, %rdi
    call calls_left
    movq (%rsp), %rax
    movq 8(%rsp), %rdx
    movups 16(%rsp), %xmm0
    movups 32(%rsp), %xmm1
    addq $48, %rsp
    movq self@gottpoff(%rip), %r10
    jmp .Lrestore
    .cfi_endproc
    .size calls_enter, . - calls_enter

// The same for functions of MPI without flags that have at most eight arguments, where neither ticks nor faults are told
// apart: what programs do millions of times a second. Each has code of its own, so that its number and where it goes on
// need not be kept: of what programs do meanwhile, as much less overlaps as there are more instructions, and stores. From
// QUICK_BY_STACK up two arguments are copied, wherever they are: the stack is aligned at a call, so these are in one page.
// r10 and rax are nothing to it: it is no nested function, and takes no `...`.
//
// Who enters where the last such call did is not inside anything, for then the stack would be lower, and has counters. So
// `frame` is left as it was.
    .hidden functions
    .macro quick number
    .cfi_startproc
    movq self@gottpoff(%rip), %r10
    cmpq %rsp, %fs:FRAME(%r10)
    jne 2f
1:  movq %fs:CALLS(%r10), %rax
    movl $MPI | \number << 16, %fs:INSIDE(%r10)
    incq \number * 8(%rax)
    .set bytes, 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    .if \number >= QUICK_BY_STACK
    .set bytes, 24
    pushq 24(%rsp)
    .cfi_adjust_cfa_offset 8
    pushq 24(%rsp)
    .cfi_adjust_cfa_offset 8
    .endif
    call *functions + \number * FUNCTION + MOVED(%rip)
    movq self@gottpoff(%rip), %r10
    movl $0, %fs:INSIDE(%r10)
    addq $bytes, %rsp
    .cfi_adjust_cfa_offset -bytes
    ret
2:  cmpw $0, %fs:INSIDE(%r10)
    jne 3f
    cmpq $0, %fs:CALLS(%r10)
    je 3f
    movq %rsp, %fs:FRAME(%r10)
    jmp 1b
3:  leaq functions + \number * FUNCTION(%rip), %r11
    jmp calls_enter
    .cfi_endproc
    .endm

    .globl calls_quick
    .hidden calls_quick
    .type calls_quick, @function
    .p2align 7
calls_quick:
    .set number, 0
    .rept QUICK
    .org calls_quick + number * QUICK_CODE
    quick number
    .set number, number + 1
    .endr
    .size calls_quick, . - calls_quick

// The same for a call that `comm_entering` looks at first.
    .globl calls_enter_comm
    .hidden calls_enter_comm
    .type calls_enter_comm, @function
calls_enter_comm:
    .cfi_startproc
    pushq %rax
    .cfi_def_cfa_offset 16
    pushq %r10
    .cfi_def_cfa_offset 24
    pushq %r11
    .cfi_def_cfa_offset 32
    subq $176, %rsp
    .cfi_def_cfa_offset 208
    save_arguments
    movq %r11, %rdi
    movq %rsp, %rsi
    leaq 208(%rsp), %rdx
    call comm_entering
    restore_arguments
    addq $176, %rsp
    .cfi_def_cfa_offset 32
    popq %r11
    .cfi_def_cfa_offset 24
    popq %r10
    .cfi_def_cfa_offset 16
    popq %rax
    .cfi_def_cfa_offset 8
    jmp calls_enter
    .cfi_endproc
    .size calls_enter_comm, . - calls_enter_comm

// The same for a call that `comm_prepared` looks at when it has returned: with at most nine arguments, none of floating point.
    .globl calls_around_comm
    .hidden calls_around_comm
    .type calls_around_comm, @function
calls_around_comm:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %r11
    .irp register, %r9, %r8, %rcx, %rdx, %rsi, %rdi
    pushq \register
    .endr
    pushq 32(%rbp)
    pushq 24(%rbp)
    pushq 16(%rbp)
    call calls_enter
    movq %rax, (%rsp)
    movq -8(%rbp), %rdi
    leaq -56(%rbp), %rsi
    leaq 16(%rbp), %rdx
    movl %eax, %ecx
    call comm_prepared
    movq (%rsp), %rax
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size calls_around_comm, . - calls_around_comm

#else

// Nothing is patched there, so nothing comes this way.
    .text
    .globl calls_enter, calls_quick, calls_enter_comm, calls_around_comm
    .hidden calls_enter, calls_quick, calls_enter_comm, calls_around_comm
calls_enter:
calls_quick:
calls_enter_comm:
calls_around_comm:
    .long 0

#endif

    .section .note.GNU-stack, "", %progbits
