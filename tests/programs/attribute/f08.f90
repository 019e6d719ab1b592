! f08 BYTES: Fortran 2008, with the module of MPI 3. The test knows 100 calls of MPI_Barrier by each rank.
program f08
    use mpi_f08
    implicit none
    integer :: rank, i
    integer(8) :: bytes
    character(32) :: argument
    integer(1), allocatable :: block(:)

    call get_command_argument(1, argument)
    read(argument, *) bytes
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    allocate(block(bytes + 1))
    block = 1
    do i = 1, 100
        call MPI_Barrier(MPI_COMM_WORLD)
    end do
    write(*, '(A,I0,A,I0)') '/per_rank/', rank, '/components/application/heap=', bytes
    call sleep(1)
    if (block(bytes / 2 + 1) /= 1) stop 1
    call MPI_Finalize()
end program
