/* The calls of the control plane that are not about tables: life cycle, ports, replication, arrays. */
#include "runtime.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* -- life cycle -------------------------------------------------------------------------------------------------------- */

EXPORT struct runtime *sw_new(int queues, int cpu_port, int drop_port, int log_fd) {
    struct runtime *rt = calloc(1, sizeof *rt);
    rt->sw.rt = rt;
    rt->sw.started = rt->sw.now = clock_ns();
    rt->sw.scratch = malloc(4 * FRAME_LIMIT);
    rt->queues = queues;
    rt->has_cpu = cpu_port >= 0;
    rt->cpu_port = cpu_port;
    rt->drop_port = drop_port;
    rt->sw.drop_port = (uint32_t)drop_port;
    rt->log_fd = log_fd;
    rt->default_limit = 64;
    rt->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutexattr_t recursive;                /* sw_load holds it while entries are inserted */
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&rt->control, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_mutex_init(&rt->pause, NULL);
    pthread_mutex_init(&rt->inject_lock, NULL);
    rt->input.tail = &rt->input.head;
    rt->inject.tail = &rt->inject.head;
    rt->events = events_new();
    return rt;
}

static void clear_replication(struct runtime *rt) {
    for (int i = 0; i < 65536; i++) rcu_free(rt, atomic_exchange(&rt->multicast[i], NULL));
    for (int i = 0; i < 32768; i++) rcu_free(rt, atomic_exchange(&rt->sessions[i], NULL));
}

/* Swaps in a program; NULL leaves the switch without one. `old` is the old library's handle. The packet thread stays
 * paused, and other callers wait, until the same thread calls sw_resume: const entries and defaults are in place before
 * the first packet. */
EXPORT int sw_load(struct runtime *rt, const struct program *program, void *library, void **old) {
    if (program && program->abi != PROGRAM_ABI) return E_INVALID;          /* nothing is locked, sw_resume not due */
    pthread_mutex_lock(&rt->control);
    struct state *fresh = program ? state_new(rt, program, library) : NULL;
    pause_packets(rt);
    struct state *gone = rt->sw.state;
    traffic_flush_queues(rt);
    clear_replication(rt);
    rt->sw.state = fresh;
    *old = gone ? gone->library : NULL;
    events_forget(rt, -1, NULL, 0);
    state_free(gone);
    rcu_collect(rt);
    return OK;
}

EXPORT void sw_resume(struct runtime *rt) {
    resume_packets(rt);
    pthread_mutex_unlock(&rt->control);
}

EXPORT void *sw_free(struct runtime *rt) {
    void *library;
    sw_stop(rt);
    sw_load(rt, NULL, NULL, &library);
    sw_resume(rt);
    for (int n = 0; n < MAX_PORTS; n++) {
        if (!rt->ports[n]) continue;
        port_detach(rt, rt->ports[n]);
        free(rt->ports[n]->queues);
        free(rt->ports[n]);
    }
    rcu_collect(rt);
    events_free(rt->events);
    close(rt->wake);
    free(rt->sw.scratch);
    free(rt);
    return library;
}

/* -- ports ------------------------------------------------------------------------------------------------------------- */

EXPORT int sw_add_port(struct runtime *rt, unsigned number, const char *interface) {
    pthread_mutex_lock(&rt->control);
    pause_packets(rt);
    struct port *port = port_get(rt, number);
    int rc = !port ? E_INVALID : port->attached ? E_DUPLICATE : OK;
    if (rc == OK) {
        int error = port_attach(rt, port, interface);
        if (error) rc = error - 1000;            /* told apart from the codes above */
    }
    if (rc == OK) {
        port->attached = true;
        memset(&port->counters, 0, sizeof port->counters);
        port->up = port_link(port);
        rt->listed[rt->port_count++] = port;
        atomic_fetch_add(&rt->ports_version, 1);
        events_port(rt, number, port->up);
    }
    resume_packets(rt);
    pthread_mutex_unlock(&rt->control);
    wake_packets(rt);
    return rc;
}

EXPORT int sw_remove_port(struct runtime *rt, unsigned number) {
    pthread_mutex_lock(&rt->control);
    pause_packets(rt);
    struct port *port = number < MAX_PORTS ? rt->ports[number] : NULL;
    int rc = port && port->attached ? OK : E_NOT_FOUND;
    if (rc == OK) {
        port_detach(rt, port);
        port->attached = port->up = false;
        unsigned i = 0;
        while (rt->listed[i] != port) i++;
        rt->listed[i] = rt->listed[--rt->port_count];
        atomic_fetch_add(&rt->ports_version, 1);
        events_port(rt, number, false);
    }
    resume_packets(rt);
    pthread_mutex_unlock(&rt->control);
    wake_packets(rt);
    return rc;
}

EXPORT int sw_port_up(struct runtime *rt, unsigned number) {
    pthread_mutex_lock(&rt->control);
    struct port *port = number < MAX_PORTS ? rt->ports[number] : NULL;
    int up = !port || !port->attached ? E_NOT_FOUND : port_link(port);
    pthread_mutex_unlock(&rt->control);
    return up;
}

EXPORT int sw_port_counters(struct runtime *rt, unsigned number, uint64_t *out) {
    pthread_mutex_lock(&rt->control);
    struct port *port = number < MAX_PORTS ? rt->ports[number] : NULL;
    if (port && port->fd >= 0) {
        struct tpacket_stats stats;              /* the kernel clears them on every read */
        socklen_t size = sizeof stats;
        if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
            port->counters.rx_dropped += stats.tp_drops;
    }
    if (port) memcpy(out, &port->counters, sizeof port->counters);
    pthread_mutex_unlock(&rt->control);
    return port ? OK : E_NOT_FOUND;
}

EXPORT int sw_port_rate(struct runtime *rt, unsigned number, uint64_t bits_per_second) {
    pthread_mutex_lock(&rt->control);
    pause_packets(rt);
    struct port *port = port_get(rt, number);
    if (port) {
        port->rate = bits_per_second;
        port->next_send = clock_ns();
    }
    resume_packets(rt);
    pthread_mutex_unlock(&rt->control);
    wake_packets(rt);
    return port ? OK : E_INVALID;
}

/* Negative port or queue is all; negative limit is unchanged. */
EXPORT int sw_queue_limits(struct runtime *rt, int64_t packets, int64_t bytes, int number, int queue) {
    pthread_mutex_lock(&rt->control);
    pause_packets(rt);
    if (number >= 0) port_get(rt, (unsigned)number);
    else {
        if (packets >= 0) rt->default_limit = (uint32_t)packets;
        if (bytes >= 0) rt->default_limit_bytes = (uint64_t)bytes;
    }
    for (int n = 0; n < MAX_PORTS; n++) {
        struct port *port = rt->ports[n];
        if (!port || (number >= 0 && n != number)) continue;
        for (int q = 0; q < rt->queues; q++) {
            if (queue >= 0 && q != queue) continue;
            if (packets >= 0) port->queues[q].limit = (uint32_t)packets;
            if (bytes >= 0) port->queues[q].limit_bytes = (uint64_t)bytes;
        }
    }
    resume_packets(rt);
    pthread_mutex_unlock(&rt->control);
    return number >= MAX_PORTS || queue >= rt->queues ? E_INVALID : OK;
}

EXPORT int sw_queue_counters(struct runtime *rt, unsigned number, unsigned queue, uint64_t *out) {
    pthread_mutex_lock(&rt->control);
    struct port *port = number < MAX_PORTS && queue < (unsigned)rt->queues ? port_get(rt, number) : NULL;
    if (port) {
        struct queue *q = &port->queues[queue];
        uint64_t values[] = {q->enqueued, q->enqueued_bytes, q->dropped, q->dropped_bytes, q->depth, q->depth_bytes};
        memcpy(out, values, sizeof values);
    }
    pthread_mutex_unlock(&rt->control);
    return port ? OK : E_NOT_FOUND;
}

EXPORT uint64_t sw_priority_drops(struct runtime *rt) { return rt->priority_drops; }
EXPORT int sw_events_fd(struct runtime *rt) { return events_fd(rt->events); }

/* -- replication, packets, digests ------------------------------------------------------------------------------------- */

EXPORT int sw_replicas(struct runtime *rt, int clone, uint32_t id, const uint16_t *pairs, uint32_t count,
                       uint32_t class_of_service, uint32_t length) {
    if (id == 0 || id >= (clone ? 32768u : 65536u)) return E_INVALID;
    struct replicas *r = NULL;
    if (count) {
        r = calloc(1, sizeof *r + count * sizeof r->list[0]);
        r->count = count;
        r->class_of_service = (uint16_t)class_of_service;
        r->length = length;
        for (uint32_t i = 0; i < count; i++) r->list[i] = (struct replica){pairs[2 * i], pairs[2 * i + 1]};
    }
    pthread_mutex_lock(&rt->control);
    rcu_free(rt, clone ? atomic_exchange(&rt->sessions[id], r) : atomic_exchange(&rt->multicast[id], r));
    rcu_collect(rt);
    pthread_mutex_unlock(&rt->control);
    return OK;
}

EXPORT int sw_inject(struct runtime *rt, unsigned port, const uint8_t *frame, uint32_t len) {
    if (len > FRAME_LIMIT) return E_INVALID;
    struct packet *raw = calloc(1, sizeof *raw + len);
    raw->len = len;
    raw->ingress_port = (uint16_t)port;
    memcpy(raw->phv, frame, len);
    pthread_mutex_lock(&rt->inject_lock);
    *rt->inject.tail = raw;
    rt->inject.tail = &raw->next;
    pthread_mutex_unlock(&rt->inject_lock);
    wake_packets(rt);
    return OK;
}

EXPORT int sw_enable_digest(struct runtime *rt, uint32_t list, int enabled) {
    pthread_mutex_lock(&rt->control);
    struct state *s = rt->sw.state;
    int rc = s && list < s->program->digest_count ? OK : E_NOT_FOUND;
    if (rc == OK) s->digest_enabled[list] = (uint8_t)enabled;
    pthread_mutex_unlock(&rt->control);
    return rc;
}

EXPORT void sw_forget(struct runtime *rt, int list, const uint8_t *sample, uint32_t len) {
    events_forget(rt, list, sample, len);
}

/* -- counters, meters, registers --------------------------------------------------------------------------------------- */

EXPORT int sw_counter(struct runtime *rt, uint32_t id, uint64_t index, uint64_t count, uint64_t *read, const uint64_t *write) {
    pthread_mutex_lock(&rt->control);
    struct state *s = rt->sw.state;
    bool ok = s && id < s->program->counter_count && index < s->counters[id].size && count <= s->counters[id].size - index;
    for (uint64_t i = 0; ok && i < count; i++) {
        struct counter *c = &s->counters[id].cells[index + i];
        if (read) { read[2 * i] = c->packets; read[2 * i + 1] = c->bytes; }
        if (write) { c->packets = write[0]; c->bytes = write[1]; }
    }
    pthread_mutex_unlock(&rt->control);
    return ok ? OK : E_NOT_FOUND;
}

EXPORT int sw_meter(struct runtime *rt, uint32_t id, uint64_t index, uint64_t *read, const uint64_t *write) {
    pthread_mutex_lock(&rt->control);
    struct state *s = rt->sw.state;
    bool ok = s && id < s->program->meter_count && index < s->meters[id].size;
    if (ok) meter_access(&s->meters[id].cells[index], read, write);
    pthread_mutex_unlock(&rt->control);
    return ok ? OK : E_NOT_FOUND;
}

/* Raw cell bytes: a machine integer of the cell's size up to 16 bytes, big-endian bytes beyond. */
EXPORT int sw_register(struct runtime *rt, uint32_t id, uint64_t index, uint8_t *read, const uint8_t *write) {
    pthread_mutex_lock(&rt->control);
    struct state *s = rt->sw.state;
    bool ok = s && id < s->program->register_count && index < s->registers[id].size;
    if (ok) {
        uint32_t cell = s->registers[id].cell;
        uint8_t *at = s->registers[id].cells + index * cell;
        if (read) memcpy(read, at, cell);
        if (write) memcpy(at, write, cell);
    }
    pthread_mutex_unlock(&rt->control);
    return ok ? OK : E_NOT_FOUND;
}

/* -- tests ------------------------------------------------------------------------------------------------------------- */

/* One frame through everything, shapers and limits aside; the frames that came out, each as port (4 bytes), length
 * (4 bytes), bytes, in `out`. The number of bytes written, or an error; E_FULL when `room` is too small. */
EXPORT int64_t sw_process(struct runtime *rt, unsigned port, const uint8_t *frame, uint32_t len, uint8_t *out, uint64_t room) {
    if (!rt->sw.state || rt->started || len > FRAME_LIMIT) return E_INVALID;
    pause_packets(rt);
    enter_round(rt);
    rt->capturing = true;
    rt->captured = NULL;
    rt->captured_tail = &rt->captured;
    sw_inject(rt, port, frame, len);
    take_injected(rt);
    for (int rounds = 0; rounds < 10000 && (rt->input.head || rt->active); rounds++) {
        run_input(rt);
        traffic_drain(rt);
    }
    int64_t used = 0;
    for (struct packet *p; (p = rt->captured);) {
        rt->captured = p->next;
        uint32_t head[2] = {p->egress_port, p->len};
        if (used >= 0 && (uint64_t)used + sizeof head + p->len <= room) {
            memcpy(out + used, head, sizeof head);
            memcpy(out + used + sizeof head, p->data, p->len);
            used += (int64_t)sizeof head + p->len;
        } else {
            used = E_FULL;
        }
        packet_free(rt, p);
    }
    rt->capturing = false;
    leave_round(rt);
    resume_packets(rt);
    return used;
}
