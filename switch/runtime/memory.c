/* Packets, the clock, and memory that the packet thread may still be looking at.
 *
 * Packets come from a pool of one size (2 KB of frame), because malloc per packet costs more than a table lookup;
 * larger frames, rare, come from malloc. A packet's buffer has the program's headroom in front, so that the deparser
 * only ever writes backwards from the payload and the payload never moves. */
#include "runtime.h"

#include <string.h>
#include <time.h>

#ifdef __SANITIZE_ADDRESS__
enum { POOL_ROOM = 0, POOL_LIMIT = 0 };         /* each frame a block of its own: reading past its end shows */
#else
enum { POOL_ROOM = 2048, POOL_LIMIT = 4096 };
#endif

uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static uint8_t *packet_base(const struct packet *p) {
    const struct program *program = p->sw->state->program;
    return (uint8_t *)p->phv + program->phv_bytes + program->headroom;
}

/* Headers and metadata are not cleared: see packet_reset and packet_clone. */
struct packet *packet_new(struct runtime *rt, uint32_t len) {
    const struct program *program = rt->sw.state->program;
    struct packet *p = rt->pool;
    if (len <= POOL_ROOM && p) {
        rt->pool = p->next;
        rt->pooled--;
    } else {
        uint32_t room = len <= POOL_ROOM ? POOL_ROOM : len;
        p = malloc(sizeof *p + program->phv_bytes + program->headroom + room);
        if (!p) abort();
        p->room = room;
    }
    uint32_t room = p->room;
    memset(p, 0, offsetof(struct packet, phv));
    p->room = room;
    p->sw = &rt->sw;
    p->truncate = ~0u;
    p->data = packet_base(p);
    p->len = len;
    return p;
}

void packet_reset(struct packet *p) { memset(p->phv, 0, p->sw->state->program->phv_bytes); }

/* The bytes now in `p` (the payload, when it is parsed); with_phv takes headers and metadata along. */
struct packet *packet_clone(struct runtime *rt, const struct packet *p, bool with_phv) {
    struct packet *copy = packet_new(rt, p->len);
    memcpy(copy->data, p->data, p->len);
    if (with_phv) memcpy(copy->phv, p->phv, rt->sw.state->program->phv_bytes);
    else packet_reset(copy);
    copy->ingress_port = p->ingress_port;
    copy->ingress_length = p->ingress_length;
    copy->packet_length = p->packet_length;
    return copy;
}

void packet_free(struct runtime *rt, struct packet *p) {
    if (p->room == POOL_ROOM && rt->pooled < POOL_LIMIT) {
        p->next = rt->pool;
        rt->pool = p;
        rt->pooled++;
    } else {
        free(p);
    }
}

/* -- RCU --------------------------------------------------------------------------------------------------------- */

struct garbage { struct garbage *next; void *memory; uint64_t round; };

void rcu_free(struct runtime *rt, void *memory) {
    if (!memory) return;
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t round = atomic_load(&rt->round);
    if (round % 2 == 0) { free(memory); return; }
    struct garbage *g = malloc(sizeof *g);
    *g = (struct garbage){rt->garbage, memory, round};
    rt->garbage = g;
}

void rcu_collect(struct runtime *rt) {
    if (!rt->garbage) return;
    uint64_t round = atomic_load(&rt->round);
    struct garbage **at = &rt->garbage;
    for (struct garbage *g; (g = *at);) {
        if (g->round == round) { at = &g->next; continue; }
        *at = g->next;
        free(g->memory);
        free(g);
    }
}
