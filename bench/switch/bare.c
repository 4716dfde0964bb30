/* The least a packet-socket switch can do: read a TPACKET_V2 ring, hand the same bytes to sendmmsg. The yardstick for
 * the embedded switch: what it costs to have no pipeline at all.
 *
 *     bare IN_INTERFACE OUT_INTERFACE       until SIGTERM; prints frames and CPU seconds */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { FRAMES = 1024, FRAME = 2048, BATCH = 64 };

static volatile sig_atomic_t stop;
static void on_term(int number) { (void)number; stop = 1; }

static int open_socket(const char *interface, int protocol) {
    struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)protocol),
                            .sll_ifindex = (int)if_nametoindex(interface)};
    int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V2;
    struct tpacket_req ring = {FRAMES * FRAME / 32, 32, FRAME, FRAMES};
    if (protocol) {
        setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version);
        if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) < 0) perror("ring");
    }
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0) perror(interface);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    int in = open_socket(argv[1], ETH_P_ALL), out = open_socket(argv[2], 0);
    uint8_t *map = mmap(NULL, FRAMES * FRAME, PROT_READ | PROT_WRITE, MAP_SHARED, in, 0);
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    memset(messages, 0, sizeof messages);
    unsigned cursor = 0;
    uint64_t total = 0;
    puts("ready");
    fflush(stdout);
    while (!stop) {
        unsigned n = 0;
        for (; n < BATCH; n++) {
            struct tpacket2_hdr *h = (void *)(map + (size_t)((cursor + n) % FRAMES) * FRAME);
            if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
            vectors[n] = (struct iovec){(uint8_t *)h + h->tp_mac, h->tp_snaplen};
            messages[n].msg_hdr.msg_iov = &vectors[n];
            messages[n].msg_hdr.msg_iovlen = 1;
        }
        if (n == 0) {
            struct pollfd p = {in, POLLIN, 0};
            poll(&p, 1, 100);
            continue;
        }
        for (unsigned sent = 0; sent < n;) {
            int k = sendmmsg(out, messages + sent, n - sent, 0);
            sent += k > 0 ? (unsigned)k : 1;
        }
        for (unsigned i = 0; i < n; i++)
            __atomic_store_n(&((struct tpacket2_hdr *)(map + (size_t)((cursor + i) % FRAMES) * FRAME))->tp_status,
                             TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        cursor = (cursor + n) % FRAMES;
        total += n;
    }
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("%llu %.6f\n", (unsigned long long)total,
           (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
    return 0;
}
