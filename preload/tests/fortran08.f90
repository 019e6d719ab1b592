! What mpi_f08 calls is counted once, and not again in the bindings below it.
module operators
    use mpi_f08
    use, intrinsic :: iso_c_binding
contains
    subroutine add(from, into, count, type)
        type(c_ptr), value :: from, into
        integer :: count
        type(MPI_Datatype) :: type
        integer, pointer :: a(:), b(:)
        integer :: rank
        call c_f_pointer(from, a, [count])
        call c_f_pointer(into, b, [count])
        call MPI_Comm_rank(MPI_COMM_WORLD, rank)
        b = a + b
    end subroutine
end module

program fortran08
    use operators
    integer :: rank, total, error, i
    type(MPI_Op) :: op
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Op_create(add, .true., op)
    do i = 1, 10
        call MPI_Barrier(MPI_COMM_WORLD)
        total = 0
        call MPI_Reduce_local(i, total, 1, MPI_INTEGER, op, error)
    end do
    call MPI_Op_free(op)
    call MPI_Finalize()
    if (total /= 10) error stop 1
end program
