// SPDX-License-Identifier: Apache-2.0
// The bench's one door to MPI: a module of its own, which numa_bench loads when a launcher of MPI
// has started it, so that a node without MPI can run numa_bench all the same.
#include "bench/ranks/comm.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct mpi_context {
    MPI_Comm node;
    MPI_Win window;
};

// Ranks whose memory is not shared are on other nodes.
static int one_node(const struct mpi_context *m, int size, struct err *err)
{
    int here, least;
    MPI_Comm_size(m->node, &here);
    MPI_Allreduce(&here, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (least == size)
        return 0;
    return err_set(err, ERR_USAGE, "ranks",
                   "the %d ranks are on several nodes (%d on the smallest): numa_bench measures "
                   "one node at a time, start one job per node (srun --nodes=1)",
                   size, least);
}

static int share_board(struct comm *c, struct mpi_context *m, struct err *err)
{
    MPI_Aint bytes = c->rank == 0 ? (MPI_Aint)board_bytes(c->size) : 0;
    MPI_Aint got;
    int unit;
    void *memory = NULL;
    MPI_Comm_set_errhandler(m->node, MPI_ERRORS_RETURN);
    if (MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, m->node, &memory, &m->window) !=
            MPI_SUCCESS ||
        MPI_Win_shared_query(m->window, 0, &got, &unit, &memory) != MPI_SUCCESS)
        return err_set(err, ERR_SYSTEM, "", "MPI gives no memory shared by the ranks of the node");
    c->board = memory;
    if (c->rank == 0)
        memset(memory, 0, board_bytes(c->size));
    MPI_Barrier(m->node);
    return 0;
}

static void mpi_close(struct comm *c)
{
    struct mpi_context *m = c->context;
    MPI_Barrier(MPI_COMM_WORLD); // who comes first waits: its exit status may end the others
    if (c->board)
        MPI_Win_free(&m->window);
    if (m->node != MPI_COMM_NULL)
        MPI_Comm_free(&m->node);
    free(m);
    MPI_Finalize();
}

static int mpi_open(struct comm *c, struct err *err)
{
    int given, wanted = c->start->single_thread ? MPI_THREAD_SINGLE : MPI_THREAD_FUNNELED;
    struct mpi_context *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to start");
    if (MPI_Init_thread(NULL, NULL, wanted, &given) != MPI_SUCCESS) {
        free(m);
        return err_set(err, ERR_SYSTEM, "", "MPI cannot start: start numa_bench with mpirun -np N");
    }
    m->node = MPI_COMM_NULL;
    c->context = m;
    MPI_Comm_rank(MPI_COMM_WORLD, &c->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &c->size);
    // Key: the world's rank, so that both count the same.
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &m->node);
    if (one_node(m, c->size, err) == 0 && share_board(c, m, err) == 0)
        return 0;
    mpi_close(c);
    return -1;
}

static int comm_mpi_failed(const char *what, struct err *err)
{
    return err_set(err, ERR_SYSTEM, "", "MPI could not %s a message", what);
}

static int mpi_send(const struct comm *c, int to, const void *bytes, size_t n, struct err *err)
{
    (void)c;
    return MPI_Send(bytes, (int)n, MPI_BYTE, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS
               ? 0
               : comm_mpi_failed("send", err);
}

static int mpi_receive(const struct comm *c, int from, void *bytes, size_t n, struct err *err)
{
    (void)c;
    return MPI_Recv(bytes, (int)n, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
                   MPI_SUCCESS
               ? 0
               : comm_mpi_failed("receive", err);
}

const struct comm_ops comm_mpi = {"mpi", mpi_open, mpi_close, mpi_send, mpi_receive};
