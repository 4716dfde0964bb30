/* What happens around a program's parser, controls and deparser: BMv2's simple_switch, step by step.
 *
 * Ingress ends with, in this order: clone, digest, resubmit, multicast, unicast or drop. Egress ends with: clone, drop,
 * deparse, recirculate, transmit. An ingress clone is parsed again from the original frame; an egress clone takes the
 * headers as egress left them. */
#include "runtime.h"

#include <string.h>

void std_set(const struct program *program, void *phv, enum std_field field, uint64_t value) {
    const struct std_spec *s = &program->std[field];
    uint8_t *at = (uint8_t *)phv + s->offset;
    value &= s->mask;
    switch (s->bytes) {
    case 1: *at = (uint8_t)value; break;
    case 2: *(uint16_t *)(void *)at = (uint16_t)value; break;
    case 4: *(uint32_t *)(void *)at = (uint32_t)value; break;
    case 8: *(uint64_t *)(void *)at = value; break;
    default: break;
    }
}

uint64_t std_get(const struct program *program, const void *phv, enum std_field field) {
    const struct std_spec *s = &program->std[field];
    const uint8_t *at = (const uint8_t *)phv + s->offset;
    switch (s->bytes) {
    case 1: return *at;
    case 2: return *(const uint16_t *)(const void *)at;
    case 4: return *(const uint32_t *)(const void *)at;
    case 8: return *(const uint64_t *)(const void *)at;
    default: return 0;
    }
}

static uint64_t microseconds(const struct runtime *rt) { return (rt->sw.now - rt->sw.started) / 1000; }

/* `queue` -1: as standard_metadata.priority says. */
static void replicate(struct runtime *rt, struct packet *p, const struct replicas *r, int queue) {
    const struct program *program = rt->sw.state->program;
    for (uint32_t i = 0; i < r->count; i++) {
        struct packet *copy = packet_clone(rt, p, true);
        std_set(program, copy->phv, STD_EGRESS_RID, r->list[i].rid);
        if (r->length) copy->truncate = r->length;
        traffic_enqueue(rt, copy, r->list[i].port, queue);
    }
}

static void clone_to_session(struct runtime *rt, struct packet *copy, const struct replicas *session) {
    replicate(rt, copy, session, session->class_of_service ? session->class_of_service : -1);
    packet_free(rt, copy);
}

static const struct replicas *requested_session(struct runtime *rt, struct packet *p) {
    if (!p->clone_session) return NULL;
    unsigned session = p->clone_session & ~CLONE_REQUESTED & 0xffffu;
    p->clone_session = 0;
    return LOAD(rt->sessions[session]);
}

static void rewind_packet(struct packet *p) { p->data = p->original; p->len = p->original_len; }

static void ingress_clone(struct runtime *rt, struct packet *p, const struct replicas *session, uint32_t length) {
    const struct program *program = rt->sw.state->program;
    uint8_t *data = p->data;
    uint32_t len = p->len;
    rewind_packet(p);
    struct packet *copy = packet_clone(rt, p, false);
    p->data = data;
    p->len = len;
    copy->packet_length = length;
    std_set(program, copy->phv, STD_INGRESS_PORT, p->ingress_port);
    program->parse(copy);
    program->reset_metadata(copy->phv);
    program->copy_fields(p->clone_fields, copy->phv, p->phv);
    std_set(program, copy->phv, STD_INSTANCE_TYPE, INGRESS_CLONE);
    clone_to_session(rt, copy, session);
}

/* Back to the parser with fresh headers, keeping the fields of a list. */
static void feed_back(struct runtime *rt, struct packet *p, int fields, int instance_type, uint32_t length) {
    const struct program *program = rt->sw.state->program;
    if (rt->input.count < 1024 && p->len <= FRAME_LIMIT) {
        struct packet *copy = packet_clone(rt, p, false);
        program->copy_fields(fields, copy->phv, p->phv);
        std_set(program, copy->phv, STD_INSTANCE_TYPE, (uint64_t)instance_type);
        std_set(program, copy->phv, STD_PACKET_LENGTH, length);
        copy->packet_length = length;
        if (instance_type == RECIRCULATED) copy->ingress_length = length;
        *rt->input.tail = copy;
        rt->input.tail = &copy->next;
        rt->input.count++;
    }
    packet_free(rt, p);
}

void pipeline_ingress(struct runtime *rt, struct packet *p) {
    const struct program *program = rt->sw.state->program;
    uint32_t length = p->packet_length;
    p->original = p->data;
    p->original_len = p->len;
    p->parser_error = program->errors[NO_ERROR];
    program->parse(p);
    std_set(program, p->phv, STD_PARSER_ERROR, p->parser_error);
    std_set(program, p->phv, STD_CHECKSUM_ERROR, p->checksum_error);
    program->ingress(p);
    p->exit = false;

    const struct replicas *session = requested_session(rt, p);
    if (session) ingress_clone(rt, p, session, length);
    if (p->digest) digest_emit(p, p->digest);
    if (p->resubmit_fields) {
        rewind_packet(p);
        feed_back(rt, p, p->resubmit_fields, RESUBMITTED, length);
        return;
    }
    unsigned group = (unsigned)std_get(program, p->phv, STD_MCAST_GRP);
    if (group) {
        const struct replicas *replicas = LOAD(rt->multicast[group & 0xffff]);
        std_set(program, p->phv, STD_INSTANCE_TYPE, REPLICATION);
        if (replicas) replicate(rt, p, replicas, -1);
        packet_free(rt, p);
        return;
    }
    unsigned port = (unsigned)std_get(program, p->phv, STD_EGRESS_SPEC);
    if ((int)port == rt->drop_port) { packet_free(rt, p); return; }
    std_set(program, p->phv, STD_INSTANCE_TYPE, NORMAL);
    traffic_enqueue(rt, p, port, -1);
}

static void egress_clone(struct runtime *rt, struct packet *p, const struct replicas *session) {
    const struct program *program = rt->sw.state->program;
    struct packet *copy = packet_clone(rt, p, true);
    program->reset_metadata(copy->phv);
    program->copy_fields(p->clone_fields, copy->phv, p->phv);
    std_set(program, copy->phv, STD_INSTANCE_TYPE, EGRESS_CLONE);
    clone_to_session(rt, copy, session);
}

/* True: `p` is a frame to transmit. False: it is gone. */
bool pipeline_egress(struct runtime *rt, struct packet *p, struct port *port) {
    const struct program *program = rt->sw.state->program;
    uint64_t now = microseconds(rt);
    p->egress_port = port->number;
    std_set(program, p->phv, STD_EGRESS_TIME, now);
    std_set(program, p->phv, STD_DEQ_TIMEDELTA, now - p->enqueued);
    std_set(program, p->phv, STD_DEQ_QDEPTH, port->queues[p->queue].depth);
    std_set(program, p->phv, STD_QID, p->queue);
    std_set(program, p->phv, STD_EGRESS_PORT, port->number);
    std_set(program, p->phv, STD_EGRESS_SPEC, (uint64_t)rt->drop_port + 1);
    std_set(program, p->phv, STD_PACKET_LENGTH, p->packet_length);
    program->egress(p);

    const struct replicas *session = requested_session(rt, p);
    if (session) egress_clone(rt, p, session);
    if ((int)std_get(program, p->phv, STD_EGRESS_SPEC) == rt->drop_port) { packet_free(rt, p); return false; }
    program->deparse(p);
    if (p->recirculate_fields) {
        feed_back(rt, p, p->recirculate_fields, RECIRCULATED, p->len);
        return false;
    }
    if (p->len > p->truncate) p->len = p->truncate;
    return true;
}
