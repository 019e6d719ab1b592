C     mpif BYTES: Fortran 77, with mpif.h. The test knows 100 calls of MPI_BARRIER by each rank.
      program mpif
      implicit none
      include 'mpif.h'
      integer ierror, rank, i
      integer*8 bytes
      character*32 argument
      integer*1, allocatable :: block(:)

      call get_command_argument(1, argument)
      read(argument, *) bytes
      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      allocate(block(bytes + 1))
      block = 1
      do i = 1, 100
        call MPI_BARRIER(MPI_COMM_WORLD, ierror)
      end do
      write(*, '(A,I0,A,I0)') '/per_rank/', rank,
     &  '/components/application/heap=', bytes
      call sleep(1)
      if (block(bytes / 2 + 1) .ne. 1) stop 1
      call MPI_FINALIZE(ierror)
      end program
