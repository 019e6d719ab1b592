! What mpif.h calls is counted once, and not again in C below it.
      program fortran77
      include 'mpif.h'
      integer rank, total, op, error, i
      external add
      call mpi_init(error)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
      call mpi_op_create(add, .true., op, error)
      do i = 1, 10
        call mpi_barrier(MPI_COMM_WORLD, error)
        total = 0
        call mpi_reduce_local(i, total, 1, MPI_INTEGER, op, error)
      end do
      call mpi_pcontrol(7)
      call mpi_op_free(op, error)
      call mpi_finalize(error)
      if (total .ne. 10) stop 1
      end

      subroutine add(from, into, count, type)
      include 'mpif.h'
      integer count, type, i, rank, error
      integer from(count), into(count)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
      do i = 1, count
        into(i) = from(i) + into(i)
      end do
      end
