/* The switch: the packet thread, and the calls of the control plane that are not about tables.
 *
 * A round of the thread: what is fed back (recirculated, packet-out), then up to BATCH frames of each port, then what
 * the traffic manager may send. When a round leaves nothing to do at once, the thread sleeps in ppoll until a frame
 * arrives, a shaper opens or the control plane calls; there is no busy waiting, because one machine carries many
 * switches. */
#include "runtime.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LINK_CHECK_NS = 250000000 };

/* -- externs that are neither table, meter nor hash ------------------------------------------------------------------ */

uint64_t random_between(uint64_t low, uint64_t high) {
    static _Thread_local uint64_t state;
    if (!state) state = clock_ns() | 1;
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;          /* xorshift64 (Marsaglia 2003) */
    uint64_t span = high - low + 1, value = state * 0x2545f4914f6cdd1dull;
    return span ? low + (uint64_t)((unsigned __int128)value * span >> 64) : value;
}

static void write_log(struct runtime *rt, const char *text, size_t len) {
    if (rt->log_fd >= 0 && write(rt->log_fd, text, len) < 0) return;          /* a log that cannot be written is lost */
}

void log_text(struct sw *sw, const char *format, ...) {
    if (sw->rt->log_fd < 0) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (n < 0) return;
    if (n > (int)sizeof line - 2) n = sizeof line - 2;
    line[n] = '\n';
    write_log(sw->rt, line, (size_t)n + 1);
}

/* log_msg: each {} takes the next value; \{ and \} are braces. */
void log_message(struct sw *sw, const char *format, unsigned count, const char *const *values) {
    if (sw->rt->log_fd < 0) return;
    char line[4096];
    size_t n = 0;
    unsigned used = 0;
    for (const char *c = format; *c && n < sizeof line - 2; c++) {
        if (*c == '\\' && (c[1] == '{' || c[1] == '}')) { line[n++] = *++c; continue; }
        const char *close = *c == '{' ? strchr(c, '}') : NULL;
        if (!close) { line[n++] = *c; continue; }
        if (used < count) {
            size_t len = strlen(values[used]);
            if (len > sizeof line - 2 - n) len = sizeof line - 2 - n;
            memcpy(line + n, values[used++], len);
            n += len;
        }
        c = close;
    }
    line[n++] = '\n';
    write_log(sw->rt, line, n);
}

/* BMv2 aborts here, by design: assert and assume are there to stop a run. */
void assertion_failed(struct sw *sw, const char *what) {
    log_text(sw, "%s", what);
    fprintf(stderr, "%s\n", what);
    abort();
}

/* -- the packet thread ----------------------------------------------------------------------------------------------- */

static void enter_round(struct runtime *rt) {
    atomic_fetch_add(&rt->round, 1);
    atomic_thread_fence(memory_order_seq_cst);
    rt->sw.now = clock_ns();
}

static void leave_round(struct runtime *rt) { atomic_fetch_add(&rt->round, 1); }

static void take_injected(struct runtime *rt) {
    pthread_mutex_lock(&rt->inject_lock);
    struct packet *list = rt->inject.head;
    rt->inject.head = NULL;
    rt->inject.tail = &rt->inject.head;
    pthread_mutex_unlock(&rt->inject_lock);
    while (list) {                               /* came from malloc: give it a proper packet */
        struct packet *raw = list, *p;
        list = raw->next;
        if (rt->sw.state) {
            const struct program *program = rt->sw.state->program;
            p = packet_new(rt, raw->len);
            memcpy(p->data, raw->phv, raw->len);
            packet_reset(p);
            p->ingress_port = raw->ingress_port;
            p->ingress_length = p->packet_length = raw->len;
            std_set(program, p->phv, STD_INGRESS_PORT, raw->ingress_port);
            std_set(program, p->phv, STD_PACKET_LENGTH, raw->len);
            std_set(program, p->phv, STD_INGRESS_TIME, (rt->sw.now - rt->sw.started) / 1000);
            *rt->input.tail = p;
            rt->input.tail = &p->next;
            rt->input.count++;
        }
        free(raw);
    }
}

static void run_input(struct runtime *rt) {
    for (int budget = BATCH; budget > 0 && rt->input.head; budget--) {
        struct packet *p = rt->input.head;
        rt->input.head = p->next;
        if (!rt->input.head) rt->input.tail = &rt->input.head;
        rt->input.count--;
        p->next = NULL;
        pipeline_ingress(rt, p);
    }
}

static void check_links(struct runtime *rt) {
    rt->clock_check = rt->sw.now + LINK_CHECK_NS;
    for (unsigned i = 0; i < rt->port_count; i++) {
        struct port *port = rt->listed[i];
        bool up = port_link(port);
        if (up == port->up) continue;
        port->up = up;
        events_port(rt, port->number, up);
    }
}

/* Whether frames are left in a ring. */
static bool round_once(struct runtime *rt) {
    bool more = false;
    take_injected(rt);
    run_input(rt);
    for (unsigned i = 0; i < rt->port_count; i++)
        if (port_receive(rt, rt->listed[i], BATCH) == BATCH) more = true;
    rt->sw.now = clock_ns();
    traffic_drain(rt);
    if (rt->sw.now >= rt->clock_check) check_links(rt);
    return more || rt->input.head;
}

static unsigned fill_polls(struct runtime *rt, struct pollfd *polls) {
    polls[0] = (struct pollfd){rt->wake, POLLIN, 0};
    for (unsigned i = 0; i < rt->port_count; i++)
        polls[i + 1] = (struct pollfd){rt->listed[i]->fd, (short)(POLLIN | (rt->listed[i]->blocked ? POLLOUT : 0)), 0};
    return rt->port_count + 1;
}

static void *packet_thread(void *argument) {
    struct runtime *rt = argument;
    static _Thread_local struct pollfd polls[MAX_PORTS + 1];
    prctl(PR_SET_NAME, "packets");
    prctl(PR_SET_TIMERSLACK, 1000);
    while (atomic_load(&rt->running)) {
        while (atomic_load(&rt->pausing)) usleep(20);
        pthread_mutex_lock(&rt->pause);
        enter_round(rt);
        bool more = round_once(rt);
        int64_t wait = more ? 0 : traffic_wait(rt);
        unsigned count = fill_polls(rt, polls), version = atomic_load(&rt->ports_version);
        leave_round(rt);
        pthread_mutex_unlock(&rt->pause);
        if (more || wait == 0) continue;
        if (wait < 0 || wait > LINK_CHECK_NS) wait = LINK_CHECK_NS;
        struct timespec timeout = {wait / 1000000000, wait % 1000000000};
        int ready = ppoll(polls, count, &timeout, NULL);
        if (ready <= 0) continue;
        if (polls[0].revents) {
            uint64_t drained;
            if (read(rt->wake, &drained, sizeof drained) < 0) continue;
        }
        if (version != atomic_load(&rt->ports_version)) continue;
        for (unsigned i = 1; i < count; i++) {
            if (polls[i].revents & POLLOUT) rt->listed[i - 1]->blocked = false;
            if (polls[i].revents & (POLLERR | POLLHUP)) {   /* link down: an error left unread would wake us for ever */
                int error;
                socklen_t size = sizeof error;
                getsockopt(polls[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
                if (polls[i].revents & POLLHUP || error == 0) usleep(1000);
                rt->clock_check = 0;
            }
        }
    }
    return NULL;
}

static void pause_packets(struct runtime *rt) {
    atomic_fetch_add(&rt->pausing, 1);
    pthread_mutex_lock(&rt->pause);
    atomic_fetch_sub(&rt->pausing, 1);
}
static void resume_packets(struct runtime *rt) { pthread_mutex_unlock(&rt->pause); }

static void wake(struct runtime *rt) {
    uint64_t one = 1;
    if (write(rt->wake, &one, sizeof one) < 0) return;      /* awake already */
}

/* -- life cycle ----------------------------------------------------------------------------------------------------- */

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
    pthread_mutex_init(&rt->control, NULL);
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
 * paused until sw_resume, so that const entries and defaults are in place before the first packet. */
EXPORT int sw_load(struct runtime *rt, const struct program *program, void *library, void **old) {
    if (program && program->abi != PROGRAM_ABI) return E_INVALID;
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
    pthread_mutex_unlock(&rt->control);
    return OK;
}

EXPORT void sw_resume(struct runtime *rt) { resume_packets(rt); }

EXPORT int sw_start(struct runtime *rt) {
    if (rt->started) return OK;
    atomic_store(&rt->running, true);
    int rc = pthread_create(&rt->thread, NULL, packet_thread, rt);
    rt->started = rc == 0;
    return -rc;
}

EXPORT void sw_stop(struct runtime *rt) {
    if (!rt->started) return;
    atomic_store(&rt->running, false);
    wake(rt);
    pthread_join(rt->thread, NULL);
    rt->started = false;
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

/* -- ports ----------------------------------------------------------------------------------------------------------- */

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
    wake(rt);
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
    wake(rt);
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
    wake(rt);
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

/* -- replication, packets, digests -------------------------------------------------------------------------------------- */

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
    wake(rt);
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

/* -- counters, meters, registers ---------------------------------------------------------------------------------------- */

int meter_access(struct meter *, uint64_t *read, const uint64_t *write);

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

/* -- tests ----------------------------------------------------------------------------------------------------------------- */

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
