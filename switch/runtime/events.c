/* Packet-ins, digests and port changes on their way to the control plane: one bounded list and an eventfd.
 *
 * A digest sample is reported once and then suppressed until the control plane forgets it (acknowledged or timed
 * out), as in BMv2: the set below is what is out. Nobody reading must cost memory without end, so the list holds 4096
 * events and the set as many samples as an 8 MB table; what does not fit is counted and lost. */
#include "runtime.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENT_LIMIT = 4096, SAMPLE_LIMIT = 65536 };
enum { EVENT_PACKET, EVENT_DIGEST, EVENT_PORT };

struct event { struct event *next; uint32_t kind, id, len; uint8_t data[]; };
struct sample { struct sample *next; uint32_t list, len; uint8_t data[]; };

struct events {
    pthread_mutex_t lock;
    int fd;
    struct event *head, **tail;
    uint32_t count;
    uint64_t lost;
    struct sample *samples[SAMPLE_LIMIT];
    uint32_t sample_count;
};

struct events *events_new(void) {
    struct events *e = calloc(1, sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    e->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    e->tail = &e->head;
    return e;
}

static void drop_samples(struct events *e, int64_t list) {
    for (uint32_t i = 0; i < SAMPLE_LIMIT; i++) {
        struct sample **at = &e->samples[i];
        for (struct sample *s; (s = *at);) {
            if (list >= 0 && s->list != (uint32_t)list) { at = &s->next; continue; }
            *at = s->next;
            free(s);
            e->sample_count--;
        }
    }
}

void events_free(struct events *e) {
    for (struct event *v; (v = e->head);) { e->head = v->next; free(v); }
    drop_samples(e, -1);
    close(e->fd);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

int events_fd(struct events *e) { return e->fd; }

/* With the lock held. */
static void add(struct events *e, uint32_t kind, uint32_t id, const uint8_t *data, uint32_t len) {
    if (e->count >= EVENT_LIMIT) { e->lost++; return; }
    struct event *v = malloc(sizeof *v + len);
    *v = (struct event){.kind = kind, .id = id, .len = len};
    if (len) memcpy(v->data, data, len);
    *e->tail = v;
    e->tail = &v->next;
    if (e->count++ == 0) {
        uint64_t one = 1;
        if (write(e->fd, &one, sizeof one) < 0) return;      /* it is readable already */
    }
}

void events_packet_in(struct runtime *rt, const uint8_t *data, uint32_t len) {
    pthread_mutex_lock(&rt->events->lock);
    add(rt->events, EVENT_PACKET, 0, data, len);
    pthread_mutex_unlock(&rt->events->lock);
}

void events_port(struct runtime *rt, unsigned port, bool up) {
    uint8_t byte = up;
    pthread_mutex_lock(&rt->events->lock);
    add(rt->events, EVENT_PORT, port, &byte, 1);
    pthread_mutex_unlock(&rt->events->lock);
}

static struct sample **find_sample(struct events *e, uint32_t list, const uint8_t *data, uint32_t len) {
    uint64_t h = 0xcbf29ce484222325ull ^ list;
    for (uint32_t i = 0; i < len; i++) h = (h ^ data[i]) * 0x100000001b3ull;
    struct sample **at = &e->samples[(h ^ h >> 32) % SAMPLE_LIMIT];
    while (*at && ((*at)->list != list || (*at)->len != len || memcmp((*at)->data, data, len))) at = &(*at)->next;
    return at;
}

void digest_emit(struct packet *p, int id) {
    struct runtime *rt = p->sw->rt;
    struct state *s = p->sw->state;
    uint32_t list = (uint32_t)id - 1;            /* programs name digests by 1-based position */
    if (list >= s->program->digest_count || !s->digest_enabled[list]) return;
    uint32_t len = s->program->digests[list].bytes;
    uint8_t sample[len + 1];
    s->program->digest(p, (int)list, sample);
    struct events *e = rt->events;
    pthread_mutex_lock(&e->lock);
    struct sample **at = find_sample(e, list, sample, len);
    if (!*at && e->sample_count < SAMPLE_LIMIT && e->count < EVENT_LIMIT) {
        struct sample *fresh = malloc(sizeof *fresh + len);
        *fresh = (struct sample){.list = list, .len = len};
        memcpy(fresh->data, sample, len);
        *at = fresh;
        e->sample_count++;
        add(e, EVENT_DIGEST, list, sample, len);
    } else if (!*at) {
        e->lost++;
    }
    pthread_mutex_unlock(&e->lock);
}

/* sample NULL: all of the list; list -1: all. */
void events_forget(struct runtime *rt, int list, const uint8_t *sample, uint32_t len) {
    struct events *e = rt->events;
    pthread_mutex_lock(&e->lock);
    if (!sample) {
        drop_samples(e, list);
    } else {
        struct sample **at = find_sample(e, (uint32_t)list, sample, len), *gone = *at;
        if (gone) { *at = gone->next; free(gone); e->sample_count--; }
    }
    pthread_mutex_unlock(&e->lock);
}

/* The next event's bytes into `out` (FRAME_LIMIT + 64 KB is always enough): its length, or -1 when there is none. */
EXPORT int64_t sw_next_event(struct runtime *rt, uint32_t *kind, uint32_t *id, uint8_t *out, uint32_t room) {
    struct events *e = rt->events;
    pthread_mutex_lock(&e->lock);
    struct event *v = e->head;
    int64_t len = -1;
    if (v) {
        e->head = v->next;
        if (!e->head) e->tail = &e->head;
        e->count--;
        *kind = v->kind;
        *id = v->id;
        len = v->len < room ? v->len : room;
        memcpy(out, v->data, (size_t)len);
        free(v);
    }
    if (e->count == 0) {
        uint64_t drained;
        if (read(e->fd, &drained, sizeof drained) < 0) drained = 0;
    }
    pthread_mutex_unlock(&e->lock);
    return len;
}

EXPORT uint64_t sw_events_lost(struct runtime *rt) { return rt->events->lost; }
