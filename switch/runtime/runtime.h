/* The runtime's own structures: ports, queues, replication, events. Programs do not see them. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "switch.h"

#include <linux/if_packet.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { MAX_PORTS = 512, MAX_QUEUES = 256, BATCH = 64, FRAME_LIMIT = 65536 };
enum { OK = 0, E_DUPLICATE = -1, E_FULL = -2, E_NOT_FOUND = -3, E_INVALID = -4, E_IN_USE = -5 };

struct queue {
    struct packet *head, **tail;
    uint32_t depth;
    uint64_t depth_bytes;
    uint32_t limit;                              /* packets */
    uint64_t limit_bytes;                        /* 0 is none */
    uint64_t enqueued, enqueued_bytes, dropped, dropped_bytes;
};

struct port_counters { uint64_t rx_packets, rx_bytes, rx_dropped, tx_packets, tx_bytes, tx_dropped; };

struct port {
    uint16_t number;
    bool attached, up, blocked;                  /* blocked: the socket's send buffer is full */
    bool active;                                 /* on the list of ports with packets queued */
    int fd;
    char interface[16];
    uint8_t *ring;
    size_t ring_bytes, frame_bytes;
    uint32_t frames, cursor;
    uint64_t rate;                               /* bit/s, 0 is unlimited */
    uint64_t next_send;                          /* nanoseconds: when the wire is free */
    uint64_t depth;                              /* packets in all queues */
    struct queue *queues;
    struct packet *batch[BATCH];
    unsigned batched;
    struct port_counters counters;
    struct port *next_active;
};

struct replica { uint16_t port, rid; };
struct replicas { uint32_t count; uint16_t class_of_service; uint32_t length; struct replica list[]; };

struct runtime {
    struct sw sw;
    int queues, cpu_port, drop_port, log_fd;
    bool has_cpu;
    pthread_t thread;
    atomic_bool running;
    bool started;
    int wake;                                    /* eventfd: control plane to packet thread */
    pthread_mutex_t control;                     /* one control-plane call at a time; taken before pause, never after */
    pthread_mutex_t pause;                       /* held by the packet thread while it works on a round */
    atomic_int pausing;

    /* RCU: `round` is odd while the packet thread may hold pointers. */
    _Atomic uint64_t round;
    struct garbage *garbage;

    struct port *ports[MAX_PORTS];
    struct port *listed[MAX_PORTS];              /* attached ports, dense */
    unsigned port_count;
    atomic_uint ports_version;
    struct port *active;
    struct { struct packet *head, **tail; uint32_t count; } input;   /* recirculated, resubmitted, packet-out */
    struct { struct packet *head, **tail; } inject;                  /* from the control plane, under inject_lock */
    pthread_mutex_t inject_lock;
    struct packet *pool;
    uint32_t pooled;
    uint64_t priority_drops;
    uint32_t default_limit;
    uint64_t default_limit_bytes;

    struct replicas *_Atomic multicast[65536];
    struct replicas *_Atomic sessions[32768];

    struct events *events;
    uint64_t clock_check;                        /* when link states are looked at next */

    /* process(): collect instead of sending */
    bool capturing;
    struct packet *captured, **captured_tail;
};

/* Frees when the packet thread cannot see it any more. Call with the control lock held. */
void rcu_free(struct runtime *, void *);
void rcu_collect(struct runtime *);

uint64_t clock_ns(void);

struct packet *packet_new(struct runtime *, uint32_t len);
struct packet *packet_clone(struct runtime *, const struct packet *, bool with_phv);
void packet_free(struct runtime *, struct packet *);
void packet_reset(struct packet *);

/* pipeline.c */
void pipeline_ingress(struct runtime *, struct packet *);
bool pipeline_egress(struct runtime *, struct packet *, struct port *);
void std_set(const struct program *, void *phv, enum std_field, uint64_t);
uint64_t std_get(const struct program *, const void *phv, enum std_field);

/* traffic.c */
struct port *port_get(struct runtime *, unsigned number);
void traffic_enqueue(struct runtime *, struct packet *, unsigned port, int queue);
void traffic_drain(struct runtime *);
int64_t traffic_wait(struct runtime *);          /* nanoseconds until a shaper opens, -1 is never */
void traffic_flush_queues(struct runtime *);

/* port.c */
int port_attach(struct runtime *, struct port *, const char *interface);
void port_detach(struct runtime *, struct port *);
unsigned port_receive(struct runtime *, struct port *, unsigned budget);
void port_send(struct runtime *, struct port *, struct packet *);
void port_flush(struct runtime *, struct port *);
bool port_link(struct port *);

/* events.c */
struct events *events_new(void);
void events_free(struct events *);
int events_fd(struct events *);
void events_packet_in(struct runtime *, const uint8_t *, uint32_t);
void events_port(struct runtime *, unsigned port, bool up);
void events_forget(struct runtime *, int list, const uint8_t *sample, uint32_t len);

/* meter.c: (configured, cir, cburst, pir, pburst), read or written where the pointer is not NULL. */
int meter_access(struct meter *, uint64_t *read, const uint64_t *write);

/* thread.c */
void pause_packets(struct runtime *);            /* returns when no round is running; none starts until resumed */
void resume_packets(struct runtime *);
void wake_packets(struct runtime *);
void enter_round(struct runtime *);
void leave_round(struct runtime *);
void take_injected(struct runtime *);
void run_input(struct runtime *);
void sw_stop(struct runtime *);

/* state.c */
struct state *state_new(struct runtime *, const struct program *, void *library);
void state_free(struct state *);
#endif
