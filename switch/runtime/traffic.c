/* The traffic manager BMv2 does not have: per port a shaper in bits per second over strict-priority queues.
 *
 * The shaper keeps the time at which the wire is free (`next_send`), not a bucket. A port that falls behind because
 * the thread woke late (a busy machine, a CPU quota) catches up, up to 200 ms; a port that was idle starts at now and earns no burst. So the average
 * is exact at any rate the timers can follow, and a flow that starts does not see a faster link than there is. Once
 * awake it sends what is due within the next 60 us too: above 200 Mbit/s that halves the wake-ups, and changes no rate.
 *
 * Ports share nothing but the thread: a port whose shaper is shut or whose socket is full is skipped. */
#include "runtime.h"

#include <string.h>

enum { CATCH_UP_NS = 200000000, AHEAD_NS = 60000 };

struct port *port_get(struct runtime *rt, unsigned number) {
    if (number >= MAX_PORTS) return NULL;
    struct port *port = rt->ports[number];
    if (port) return port;
    port = calloc(1, sizeof *port);
    port->number = (uint16_t)number;
    port->fd = -1;
    port->queues = calloc((size_t)rt->queues, sizeof *port->queues);
    for (int q = 0; q < rt->queues; q++) {
        port->queues[q].tail = &port->queues[q].head;
        port->queues[q].limit = rt->default_limit;
        port->queues[q].limit_bytes = rt->default_limit_bytes;
    }
    return rt->ports[number] = port;
}

static void activate(struct runtime *rt, struct port *port) {
    if (port->active) return;
    port->active = true;
    port->next_active = rt->active;
    rt->active = port;
}

void traffic_enqueue(struct runtime *rt, struct packet *p, unsigned number, int wanted) {
    const struct program *program = rt->sw.state->program;
    uint64_t queue = wanted >= 0 ? (uint64_t)wanted : std_get(program, p->phv, STD_PRIORITY);
    struct port *port = port_get(rt, number);
    if (!port || queue >= (uint64_t)rt->queues) {
        if (port) rt->priority_drops++;
        packet_free(rt, p);
        return;
    }
    struct queue *q = &port->queues[queue];
    uint32_t bytes = p->packet_length;
    if (!rt->capturing && (q->depth >= q->limit || (q->limit_bytes && q->depth_bytes + bytes > q->limit_bytes))) {
        q->dropped++;
        q->dropped_bytes += bytes;
        packet_free(rt, p);
        return;
    }
    p->queue = (uint8_t)queue;
    p->enqueued = (rt->sw.now - rt->sw.started) / 1000;
    std_set(program, p->phv, STD_ENQ_TIMESTAMP, p->enqueued);
    std_set(program, p->phv, STD_ENQ_QDEPTH, q->depth);
    if (port->depth == 0 && port->next_send < rt->sw.now) port->next_send = rt->sw.now;
    p->next = NULL;
    p->original_len = bytes;                     /* what depth_bytes counted; the frame is not needed any more */
    *q->tail = p;
    q->tail = &p->next;
    q->depth++;
    q->depth_bytes += bytes;
    q->enqueued++;
    q->enqueued_bytes += bytes;
    port->depth++;
    activate(rt, port);
}

static struct packet *dequeue(struct runtime *rt, struct port *port) {
    for (int i = rt->queues - 1; i >= 0; i--) {
        struct queue *q = &port->queues[i];
        struct packet *p = q->head;
        if (!p) continue;
        q->head = p->next;
        if (!q->head) q->tail = &q->head;
        q->depth--;
        q->depth_bytes -= p->original_len;
        port->depth--;
        return p;
    }
    return NULL;
}

static bool open_now(const struct runtime *rt, const struct port *port) {
    return !port->blocked && (rt->capturing || port->rate == 0 || port->next_send <= rt->sw.now + AHEAD_NS);
}

static void deliver(struct runtime *rt, struct port *port, struct packet *p) {
    if (rt->capturing) {
        p->next = NULL;
        p->egress_port = port->number;
        *rt->captured_tail = p;
        rt->captured_tail = &p->next;
    } else if (rt->has_cpu && port->number == rt->cpu_port) {
        events_packet_in(rt, p->data, p->len);
        port->counters.tx_packets++;
        port->counters.tx_bytes += p->len;
        packet_free(rt, p);
    } else {
        port_send(rt, port, p);
    }
}

static void drain(struct runtime *rt, struct port *port) {
    if (port->next_send + CATCH_UP_NS < rt->sw.now) port->next_send = rt->sw.now - CATCH_UP_NS;
    for (int budget = BATCH; budget > 0 && port->depth && open_now(rt, port); budget--) {
        struct packet *p = dequeue(rt, port);
        if (!pipeline_egress(rt, p, port)) continue;
        if (port->rate) port->next_send += (uint64_t)p->len * 8000000000ull / port->rate;
        deliver(rt, port, p);
    }
    if (port->batched) port_flush(rt, port);
}

void traffic_drain(struct runtime *rt) {
    struct port *port = rt->active;
    rt->active = NULL;
    while (port) {
        struct port *next = port->next_active;
        port->active = false;
        drain(rt, port);
        if (port->depth || port->batched) activate(rt, port);
        port = next;
    }
}

int64_t traffic_wait(struct runtime *rt) {
    int64_t wait = -1;
    for (struct port *port = rt->active; port; port = port->next_active) {
        if (port->blocked || !port->depth) continue;
        if (port->rate == 0 || port->next_send <= rt->sw.now) return 0;
        int64_t until = (int64_t)(port->next_send - rt->sw.now);
        if (wait < 0 || until < wait) wait = until;
    }
    return wait;
}

/* Drops everything queued (the headers belong to a program that goes away). */
void traffic_flush_queues(struct runtime *rt) {
    for (int n = 0; n < MAX_PORTS; n++) {
        struct port *port = rt->ports[n];
        if (!port) continue;
        for (struct packet *p; (p = dequeue(rt, port));) packet_free(rt, p);
        for (unsigned i = 0; i < port->batched; i++) packet_free(rt, port->batch[i]);
        port->batched = 0;
        port->active = false;
    }
    rt->active = NULL;
    for (struct packet *p; (p = rt->input.head);) { rt->input.head = p->next; packet_free(rt, p); }
    rt->input.tail = &rt->input.head;
    rt->input.count = 0;
    pthread_mutex_lock(&rt->inject_lock);
    for (struct packet *p; (p = rt->inject.head);) { rt->inject.head = p->next; free(p); }
    rt->inject.tail = &rt->inject.head;
    pthread_mutex_unlock(&rt->inject_lock);
    for (struct packet *p; (p = rt->pool);) { rt->pool = p->next; free(p); }
    rt->pooled = 0;
}
