// SPDX-License-Identifier: Apache-2.0
// The image is plain arrays behind a head with their numbers, in a memory file that is sealed
// before it is handed over, so neither side can change what the other reads.
#include "core/node/machine_image.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

// First the head, then the arrays in this order. Each begins at a multiple of 8 bytes.
struct head {
    char hostname[sizeof((struct machine *)0)->hostname];
    struct topology t; // its pointers mean nothing
    bool distances;
    size_t xml_bytes; // with its NUL; 0: there is none
};

enum { ALIGNMENT = 8 };

static size_t aligned(size_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void machine_image_add(struct buf *out, const void *data, size_t n)
{
    static const char zeros[ALIGNMENT];
    buf_add(out, data, n);
    buf_add(out, zeros, aligned(n) - n);
}

static void write_image(const struct machine *m, struct buf *out)
{
    const struct topology *t = &m->topology;
    struct head h = {.t = *t,
                     .distances = t->distance != NULL,
                     .xml_bytes = m->topology_xml ? strlen(m->topology_xml) + 1 : 0};
    memcpy(h.hostname, m->hostname, sizeof h.hostname);
    machine_image_add(out, &h, sizeof h);
    machine_image_add(out, t->cpus, sizeof *t->cpus * (size_t)t->n_cpus);
    machine_image_add(out, t->nodes, sizeof *t->nodes * (size_t)t->n_nodes);
    machine_image_add(out, t->caches, sizeof *t->caches * (size_t)t->n_caches);
    if (t->distance)
        machine_image_add(out, t->distance,
                          sizeof *t->distance * (size_t)t->n_nodes * (size_t)t->n_nodes);
    machine_image_add(out, t->claims, sizeof *t->claims * (size_t)t->n_claims);
    if (m->topology_xml)
        machine_image_add(out, m->topology_xml, h.xml_bytes);
}

int machine_image_make(const struct machine *m, struct err *err)
{
    CLEANUP_BUF struct buf image = BUF_INIT;
    write_image(m, &image);
    if (!buf_ok(&image))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the topology");
    CLEANUP_FD int fd = memfd_create("numaprobe-machine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, image.data, image.len) != (ssize_t)image.len)
        return err_sys(err, "a memory file for the topology");
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    return steal_fd(&fd);
}

static void *machine_image_take(char **at, size_t n)
{
    void *p = *at;
    *at += aligned(n);
    return p;
}

int machine_image_open(struct machine *m, int fd, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof(struct head))
        return err_set(err, ERR_INTERNAL, "", "there is no image of the machine");
    char *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return err_sys(err, "the image of the machine cannot be mapped");
    const struct head *h = machine_image_take(&at, sizeof *h);
    struct topology t = h->t;
    const size_t nodes = (size_t)t.n_nodes;
    t.cpus = machine_image_take(&at, sizeof *t.cpus * (size_t)t.n_cpus);
    t.nodes = machine_image_take(&at, sizeof *t.nodes * nodes);
    t.caches = machine_image_take(&at, sizeof *t.caches * (size_t)t.n_caches);
    t.distance = h->distances ? machine_image_take(&at, sizeof *t.distance * nodes * nodes) : NULL;
    t.claims = machine_image_take(&at, sizeof *t.claims * (size_t)t.n_claims);
    *m = (struct machine){.topology = t};
    m->topology_xml = h->xml_bytes ? machine_image_take(&at, h->xml_bytes) : NULL;
    memcpy(m->hostname, h->hostname, sizeof m->hostname);
    return 0;
}
