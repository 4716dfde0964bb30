/* Sends one frame at a time into one interface and waits for it at another; prints each round trip's nanoseconds.
 *
 *     latency OUT_INTERFACE IN_INTERFACE FRAME_IN_HEX COUNT
 *
 * The wait polls without sleeping, so the figure is the switch's delay and two socket calls. A frame that has not come
 * back within 200 ms is printed as -1. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 2048, PAUSE_US = 500 };

static int open_socket(const char *interface, int protocol) {
    struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)protocol),
                            .sll_ifindex = (int)if_nametoindex(interface)};
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0) { perror(interface); exit(1); }
    return fd;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    static uint8_t frame[MAX], back[MAX];
    size_t length = strlen(argv[3]) / 2;
    if (length > MAX) return 2;
    for (size_t i = 0; i < length; i++) {
        unsigned byte;
        if (sscanf(argv[3] + 2 * i, "%2x", &byte) != 1) return 2;
        frame[i] = (uint8_t)byte;
    }
    int out = open_socket(argv[1], 0), in = open_socket(argv[2], ETH_P_ALL);
    for (int count = atoi(argv[4]); count > 0; count--) {
        while (recv(in, back, sizeof back, MSG_DONTWAIT) > 0) { }
        int64_t start = now(), end = start;
        if (send(out, frame, length, 0) < 0) { perror("send"); return 1; }
        for (;;) {
            ssize_t n = recv(in, back, sizeof back, MSG_DONTWAIT);
            end = now();
            if (n == (ssize_t)length) break;
            if (end - start > 200000000) { end = start - 1; break; }
        }
        printf("%lld\n", (long long)(end - start));
        usleep(PAUSE_US);
    }
    return 0;
}
