/* Sends UDP frames of `flows` flows out of an interface with sendmmsg, flat out or at a rate, and prints how many.
 *
 *     generate INTERFACE DST_MAC BYTES FLOWS SECONDS [FRAMES_PER_SECOND]
 *
 * Flow i is 10.0.0.1:i+1 -> 10.0.0.2:5001. Checksums are right: a switch that verifies them must not drop. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 32, MAX_FLOWS = 8192, MAX_BYTES = 1514 };

static uint8_t frames[MAX_FLOWS][MAX_BYTES];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint16_t checksum(const uint8_t *p, size_t n) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += 2) sum += (uint32_t)p[i] << 8 | p[i + 1];
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void build(uint8_t *f, const uint8_t *mac, int bytes, int flow) {
    memset(f, 0, (size_t)bytes);
    memcpy(f, mac, 6);
    memcpy(f + 6, "\x02\0\0\0\0\x01\x08\x00", 8);
    uint8_t *ip = f + 14, *udp = ip + 20;
    memcpy(ip, "\x45\0\0\0\0\0\x40\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02", 20);
    ip[2] = (uint8_t)((bytes - 14) >> 8); ip[3] = (uint8_t)(bytes - 14);
    uint16_t sum = checksum(ip, 20);
    ip[10] = (uint8_t)(sum >> 8); ip[11] = (uint8_t)sum;
    udp[0] = (uint8_t)((flow + 1) >> 8); udp[1] = (uint8_t)(flow + 1);
    udp[2] = 5001 >> 8; udp[3] = 5001 & 0xff;
    udp[4] = (uint8_t)((bytes - 34) >> 8); udp[5] = (uint8_t)(bytes - 34);
}

int main(int argc, char **argv) {
    if (argc < 6) { fprintf(stderr, "usage: generate INTERFACE DST_MAC BYTES FLOWS SECONDS [RATE]\n"); return 2; }
    int bytes = atoi(argv[3]), flows = atoi(argv[4]);
    double seconds = atof(argv[5]), rate = argc > 6 ? atof(argv[6]) : 0;
    unsigned m[6];
    uint8_t mac[6];
    if (sscanf(argv[2], "%x:%x:%x:%x:%x:%x", m, m + 1, m + 2, m + 3, m + 4, m + 5) != 6) return 2;
    for (int i = 0; i < 6; i++) mac[i] = (uint8_t)m[i];
    if (flows > MAX_FLOWS || bytes > MAX_BYTES || bytes < 42) return 2;
    for (int i = 0; i < flows; i++) build(frames[i], mac, bytes, i);

    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(argv[1])};
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) < 0) { perror(argv[1]); return 1; }
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    memset(messages, 0, sizeof messages);
    uint64_t sent = 0;
    double start = now(), end = start + seconds, time = start;
    while (time < end) {
        int count = BATCH;
        if (rate > 0) {
            double due = (time - start) * rate - (double)sent;
            if (due < 1) { struct timespec nap = {0, 20000}; nanosleep(&nap, NULL); time = now(); continue; }
            if (due < count) count = (int)due;
        }
        for (int i = 0; i < count; i++) {
            vectors[i] = (struct iovec){frames[(sent + (uint64_t)i) % (uint64_t)flows], (size_t)bytes};
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        int n = sendmmsg(fd, messages, (unsigned)count, 0);
        if (n > 0) sent += (uint64_t)n;
        else if (errno != ENOBUFS && errno != EAGAIN) { perror("sendmmsg"); return 1; }
        time = now();
    }
    printf("%llu %.6f\n", (unsigned long long)sent, time - start);
    return 0;
}
