/* Ports on network interfaces: a memory-mapped ring in, batched sendmmsg out.
 *
 * The ring is TPACKET_V2, not V3: V3 hands over blocks and a lone frame waits for the block's timeout (1 ms at best,
 * 535 us at the median); V2 hands over frames and the median is 4 us. Frames are copied out of the ring at once,
 * because a frame may wait long in a queue and the ring must not fill behind it. */
#include "runtime.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

enum { RING_FRAMES = 1024, VLAN_TAG = 4 };

bool port_link(struct port *port) {
    struct ifreq request;
    memset(&request, 0, sizeof request);
    memcpy(request.ifr_name, port->interface, sizeof port->interface);
    if (ioctl(port->fd, SIOCGIFFLAGS, &request) < 0) return false;
    return (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static int map_ring(struct port *port) {
    struct ifreq request;
    memset(&request, 0, sizeof request);
    memcpy(request.ifr_name, port->interface, sizeof port->interface);
    size_t mtu = ioctl(port->fd, SIOCGIFMTU, &request) < 0 ? 1500 : (size_t)request.ifr_mtu;
    size_t frame = 2048;
    while (frame < mtu + 14 + 2 * VLAN_TAG + 128) frame *= 2;
    size_t block = frame > 65536 ? frame : 65536;
    struct tpacket_req ring = {
        .tp_block_size = (unsigned)block, .tp_frame_size = (unsigned)frame,
        .tp_frame_nr = RING_FRAMES, .tp_block_nr = (unsigned)(RING_FRAMES * frame / block)};
    int version = TPACKET_V2, reserve = VLAN_TAG;
    if (setsockopt(port->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0) return -errno;
    if (setsockopt(port->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof reserve) < 0) return -errno;
    if (setsockopt(port->fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) < 0) return -errno;
    port->ring_bytes = (size_t)ring.tp_block_size * ring.tp_block_nr;
    port->frame_bytes = frame;
    port->frames = RING_FRAMES;
    port->cursor = 0;
    port->ring = mmap(NULL, port->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, port->fd, 0);
    if (port->ring == MAP_FAILED) { port->ring = NULL; return -errno; }
    return 0;
}

/* 0 or -errno. */
int port_attach(struct runtime *rt, struct port *port, const char *interface) {
    (void)rt;
    memset(port->interface, 0, sizeof port->interface);
    strncpy(port->interface, interface, sizeof port->interface - 1);
    unsigned index = if_nametoindex(interface);
    if (!index) return -errno;
    port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->fd < 0) return -errno;
    int on = 1, rc = map_ring(port);
    setsockopt(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    if (rc == 0 && setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0)
        rc = -errno;
    /* Bound last: nothing may arrive before the ring and the filters stand. */
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    if (rc == 0 && bind(port->fd, (struct sockaddr *)&address, sizeof address) < 0) rc = -errno;
    if (rc) port_detach(rt, port);
    return rc;
}

void port_detach(struct runtime *rt, struct port *port) {
    for (unsigned i = 0; i < port->batched; i++) packet_free(rt, port->batch[i]);
    port->batched = 0;
    if (port->ring) munmap(port->ring, port->ring_bytes);
    if (port->fd >= 0) close(port->fd);
    port->ring = NULL;
    port->fd = -1;
    port->blocked = false;
}

/* A frame's bytes out of the ring, with the VLAN tag that the kernel took off put back. */
static struct packet *copy_frame(struct runtime *rt, const struct tpacket2_hdr *h) {
    const uint8_t *frame = (const uint8_t *)h + h->tp_mac;
    uint32_t len = h->tp_snaplen;
    if (!(h->tp_status & TP_STATUS_VLAN_VALID) || len < 12) {
        struct packet *p = packet_new(rt, len);
        memcpy(p->data, frame, len);
        return p;
    }
    struct packet *p = packet_new(rt, len + VLAN_TAG);
    uint16_t tpid = htons(h->tp_status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : ETH_P_8021Q);
    uint16_t tci = htons(h->tp_vlan_tci);
    memcpy(p->data, frame, 12);
    memcpy(p->data + 12, &tpid, 2);
    memcpy(p->data + 14, &tci, 2);
    memcpy(p->data + 16, frame + 12, len - 12);
    return p;
}

/* Frames taken, at most `budget`. */
unsigned port_receive(struct runtime *rt, struct port *port, unsigned budget) {
    unsigned taken = 0;
    while (taken < budget && port->ring) {
        struct tpacket2_hdr *h = (void *)(port->ring + (size_t)port->cursor * port->frame_bytes);
        if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
        struct sockaddr_ll *from = (void *)((uint8_t *)h + TPACKET_ALIGN(sizeof *h));
        struct packet *p = NULL;
        if (from->sll_pkttype != PACKET_OUTGOING && rt->sw.state) {
            if (h->tp_snaplen < h->tp_len) port->counters.rx_dropped++;    /* larger than the interface's MTU */
            else p = copy_frame(rt, h);
        }
        __atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        port->cursor = port->cursor + 1 == port->frames ? 0 : port->cursor + 1;
        taken++;
        if (!p) continue;
        const struct program *program = rt->sw.state->program;
        port->counters.rx_packets++;
        port->counters.rx_bytes += p->len;
        packet_reset(p);
        p->ingress_port = port->number;
        p->ingress_length = p->packet_length = p->len;
        std_set(program, p->phv, STD_INGRESS_PORT, port->number);
        std_set(program, p->phv, STD_PACKET_LENGTH, p->len);
        std_set(program, p->phv, STD_INGRESS_TIME, (rt->sw.now - rt->sw.started) / 1000);
        pipeline_ingress(rt, p);
    }
    return taken;
}

void port_send(struct runtime *rt, struct port *port, struct packet *p) {
    if (port->fd < 0) { port->counters.tx_dropped++; packet_free(rt, p); return; }
    if (port->batched == BATCH) port_flush(rt, port);
    if (port->batched == BATCH) { port->counters.tx_dropped++; packet_free(rt, p); return; }
    port->batch[port->batched++] = p;
    if (port->batched == BATCH) port_flush(rt, port);
}

void port_flush(struct runtime *rt, struct port *port) {
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    unsigned n = port->batched, at = 0;
    for (unsigned i = 0; i < n; i++) {
        vectors[i] = (struct iovec){port->batch[i]->data, port->batch[i]->len};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
    }
    port->blocked = false;
    while (at < n) {
        int sent = sendmmsg(port->fd, messages + at, n - at, MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) { port->blocked = true; break; }
        if (sent <= 0) {                         /* this frame cannot go: too long, too short, link down, qdisc full */
            port->counters.tx_dropped++;
            packet_free(rt, port->batch[at++]);
            continue;
        }
        for (int i = 0; i < sent; i++, at++) {
            port->counters.tx_packets++;
            port->counters.tx_bytes += port->batch[at]->len;
            packet_free(rt, port->batch[at]);
        }
    }
    memmove(port->batch, port->batch + at, (n - at) * sizeof port->batch[0]);
    port->batched = n - at;
}
