// Sizes, types and constants. Change a table's size here.

const bit<32> PORTS             = 512;
const bit<32> CLASSES           = 8;
const bit<32> FLOW_POLICY_SIZE  = 8192;   // two entries a flow: there and back
const bit<32> ROUTES            = 1024;   // per IP version
const bit<32> ECMP_GROUPS       = 64;
const bit<32> ECMP_MEMBERS      = 256;
const bit<32> DIGEST_BUCKETS    = 4096;

typedef bit<9>   port_t;
typedef bit<3>   class_t;                 // 7 is served first
typedef bit<6>   dscp_t;                  // class << 3
typedef bit<16>  group_t;
typedef bit<2>   color_t;
typedef bit<48>  mac_t;
typedef bit<32>  ipv4_t;
typedef bit<128> ipv6_t;

const port_t  CPU_PORT      = 510;        // the switch's --cpu-port; BMv2 drops at 511
const port_t  NO_PATH       = 0;          // so port 0 cannot be pinned
const group_t NO_GROUP      = 0;
const class_t CONTROL_CLASS = 7;
const color_t RED           = 2;

const bit<48> DIGEST_INTERVAL = 1000000;  // microseconds between two digests of one flow

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_ARP  = 0x0806;
const bit<16> TYPE_IPV6 = 0x86dd;

const bit<8> PROTO_TCP    = 6;
const bit<8> PROTO_UDP    = 17;
const bit<8> PROTO_ICMPV6 = 58;

const bit<8> ICMPV6_NEIGHBOR_SOLICITATION = 135;

// An ECN field of 0 means that the sender does not understand marks.
const bit<2> ECN_NOT_CAPABLE = 0;
const bit<2> ECN_CONGESTED   = 3;

const bit<16> FULL_FRAME = 1514;          // bytes: the unit of the ECN threshold in a phantom queue

// Why a packet was sent to the controller.
typedef bit<7> punt_reason_t;
const punt_reason_t PUNT_ARP                   = 1;
const punt_reason_t PUNT_NEIGHBOR_SOLICITATION = 2;

// Why a flow was reported to the controller.
typedef bit<8> report_reason_t;
const report_reason_t REPORT_NOTHING      = 0;
const report_reason_t REPORT_UNKNOWN_FLOW = 1;
const report_reason_t REPORT_DEAD_PATH    = 2;
