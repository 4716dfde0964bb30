/* The packet thread.
 *
 * A round: what is fed back (recirculated, packet-out), then up to BATCH frames of each port, then what the traffic
 * manager may send. When a round leaves nothing to do at once, the thread sleeps in ppoll until a frame arrives, a
 * shaper opens or the control plane calls; there is no busy waiting, because one machine carries many switches.
 *
 * The thread asks for a higher priority than the emulated hosts (this thread only; refused without the right to, and
 * then no harm): a switch that waits for the CPU behind its hosts loses frames in the ring that no queue ever saw. */
#include "runtime.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { LINK_CHECK_NS = 250000000, THREAD_NICE = -10 };

void enter_round(struct runtime *rt) {
    atomic_fetch_add(&rt->round, 1);
    atomic_thread_fence(memory_order_seq_cst);
    rt->sw.now = clock_ns();
}

void leave_round(struct runtime *rt) { atomic_fetch_add(&rt->round, 1); }

void take_injected(struct runtime *rt) {
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

void run_input(struct runtime *rt) {
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
    setpriority(PRIO_PROCESS, 0, THREAD_NICE);
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

void pause_packets(struct runtime *rt) {
    atomic_fetch_add(&rt->pausing, 1);
    pthread_mutex_lock(&rt->pause);
    atomic_fetch_sub(&rt->pausing, 1);
}
void resume_packets(struct runtime *rt) { pthread_mutex_unlock(&rt->pause); }

void wake_packets(struct runtime *rt) {
    uint64_t one = 1;
    if (write(rt->wake, &one, sizeof one) < 0) return;      /* awake already */
}

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
    wake_packets(rt);
    pthread_join(rt->thread, NULL);
    rt->started = false;
}
