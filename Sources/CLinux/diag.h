// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Socket at the other end of a TCP connection on this machine, and its owner, from the kernel's socket diagnostics
// (sock_diag(7)). Calls that fail return the negated error number.

#ifndef CLINUX_DIAG_H
#define CLINUX_DIAG_H

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

// netinet/in.h is left out: Swift would assign its types to this module instead of the Glibc module.

/// One end of a TCP connection: address and port. The address is in two halves as IPv6 writes it (an IPv4 one as
/// ::ffff:a.b.c.d), so equal ends compare equal, whichever family a socket gave them in.
struct clinux_endpoint {
    uint64_t high;
    uint64_t low;
    uint32_t port;
};

/// IPPROTO_TCP.
#define CLINUX_TCP 6

/// Answer of the kernel about a socket.
struct clinux_diag_answer {
    /// The number of the question.
    uint32_t sequence;
    /// The error number if there is no answer; the members below are unset then.
    int32_t error;
    /// the number of the kernel's tcp_states.h.
    uint32_t state;
    uint32_t uid;
    /// Inode of the socket, as in fstat(2); 0 if no process holds the socket any more.
    uint32_t inode;
    struct clinux_endpoint local;
    struct clinux_endpoint remote;
};

// The address of a family: 4 or 16 bytes, and the port, both in network byte order.
static inline struct clinux_endpoint clinux_endpoint_make(
    int family, const void *_Nonnull address, const void *_Nonnull port) {
    uint8_t bytes[16] = {[10] = 0xFF, [11] = 0xFF};
    if (family == AF_INET) {
        memcpy(bytes + 12, address, 4);
    } else {
        memcpy(bytes, address, 16);
    }
    const uint8_t *digits = port;
    struct clinux_endpoint end = {.port = (uint32_t)(digits[0] << 8 | digits[1])};
    for (int i = 0; i < 8; i++) end.high = end.high << 8 | bytes[i];
    for (int i = 8; i < 16; i++) end.low = end.low << 8 | bytes[i];
    return end;
}

// True if both are IPv4 addresses, which the kernel keeps apart from those of IPv6.
static inline int clinux_endpoints_are_v4(
    const struct clinux_endpoint *_Nonnull one, const struct clinux_endpoint *_Nonnull two) {
    return one->high == 0 && one->low >> 32 == 0xFFFF && two->high == 0 && two->low >> 32 == 0xFFFF;
}

// Writes an end for the kernel.
static inline void clinux_endpoint_write(
    const struct clinux_endpoint *_Nonnull end, int v4, void *_Nonnull address, void *_Nonnull port) {
    uint8_t *bytes = address;
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(end->high >> (56 - 8 * i));
    for (int i = 0; i < 8; i++) bytes[i + 8] = (uint8_t)(end->low >> (56 - 8 * i));
    if (v4) {
        memmove(bytes, bytes + 12, 4);
        memset(bytes + 4, 0, 12);
    }
    uint8_t *digits = port;
    digits[0] = (uint8_t)(end->port >> 8);
    digits[1] = (uint8_t)end->port;
}

// Converts the name of a socket or of its peer to an end.
static inline int clinux_endpoint_read(
    const struct sockaddr_storage *_Nonnull address, struct clinux_endpoint *_Nonnull end) {
    // sockaddr_in: family, port, address; sockaddr_in6: family, port, flow, address; two, two, and four bytes.
    const uint8_t *bytes = (const uint8_t *)address;
    if (address->ss_family == AF_INET) {
        *end = clinux_endpoint_make(AF_INET, bytes + 4, bytes + 2);
        return 0;
    }
    if (address->ss_family == AF_INET6) {
        *end = clinux_endpoint_make(AF_INET6, bytes + 8, bytes + 2);
        return 0;
    }
    return -EAFNOSUPPORT;
}

/// Both ends of a connected TCP socket.
static inline int clinux_endpoints(
    int fd, struct clinux_endpoint *_Nonnull local, struct clinux_endpoint *_Nonnull remote) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) return -errno;
    int result = clinux_endpoint_read(&address, local);
    if (result < 0) return result;
    length = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &length) < 0) return -errno;
    return clinux_endpoint_read(&address, remote);
}

/// State of a TCP socket of this process (TCP_INFO, tcp(7)), with the number of the kernel's tcp_states.h.
static inline int clinux_tcp_state(int fd) {
    // The first member of struct tcp_info; the kernel fills as much as there is room for.
    uint8_t state = 0;
    socklen_t length = sizeof state;
    if (getsockopt(fd, CLINUX_TCP, 11, &state, &length) < 0) return -errno;
    return state;
}

/// Opens a new nonblocking socket for queries, closed on exec.
static inline int clinux_diag_socket(void) {
    int result = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    return result < 0 ? -errno : result;
}

/// Queries the one TCP socket with these ends. The kernel answers within the call: the answer can be read when it
/// returns.
static inline int clinux_diag_ask(
    int diag, uint32_t sequence, const struct clinux_endpoint *_Nonnull local,
    const struct clinux_endpoint *_Nonnull remote) {
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 question;
    } message;
    memset(&message, 0, sizeof message);
    int v4 = clinux_endpoints_are_v4(local, remote);
    message.header.nlmsg_len = sizeof message;
    message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    message.header.nlmsg_flags = NLM_F_REQUEST;
    message.header.nlmsg_seq = sequence;
    message.question.sdiag_family = v4 ? AF_INET : AF_INET6;
    message.question.sdiag_protocol = CLINUX_TCP;
    message.question.idiag_states = ~0U;
    clinux_endpoint_write(local, v4, message.question.id.idiag_src, &message.question.id.idiag_sport);
    clinux_endpoint_write(remote, v4, message.question.id.idiag_dst, &message.question.id.idiag_dport);
    // The loopback interface, which always has this number: finds sockets bound to it (SO_BINDTODEVICE) and unbound
    // ones.
    message.question.id.idiag_if = 1;
    message.question.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    message.question.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t sent = sendto(
        diag, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&kernel, sizeof kernel);
    if (sent < 0) return -errno;
    return sent == sizeof message ? 0 : -EMSGSIZE;
}

/// Reads the next answer: returns 1, 0 for a message that is not an answer, or -EAGAIN without a message.
static inline int clinux_diag_take(int diag, struct clinux_diag_answer *_Nonnull answer) {
    union {
        struct nlmsghdr header;
        uint8_t bytes[1024];
    } message;
    struct sockaddr_nl sender;
    memset(&sender, 0, sizeof sender);
    socklen_t length = sizeof sender;
    ssize_t got =
        recvfrom(diag, message.bytes, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&sender, &length);
    if (got < 0) return -errno;
    memset(answer, 0, sizeof *answer);
    // Only the kernel has the number 0.
    if (sender.nl_pid != 0 || got < (ssize_t)sizeof message.header) return 0;
    if (message.header.nlmsg_len < sizeof message.header || message.header.nlmsg_len > (size_t)got) return 0;
    size_t payload = message.header.nlmsg_len - sizeof message.header;
    const uint8_t *start = message.bytes + NLMSG_HDRLEN;
    answer->sequence = message.header.nlmsg_seq;
    if (message.header.nlmsg_type == NLMSG_ERROR) {
        struct nlmsgerr failure;
        if (payload < sizeof failure) return 0;
        memcpy(&failure, start, sizeof failure);
        answer->error = failure.error == 0 ? ENOMSG : -failure.error;
        return 1;
    }
    struct inet_diag_msg entry;
    if (message.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || payload < sizeof entry) return 0;
    memcpy(&entry, start, sizeof entry);
    answer->state = entry.idiag_state;
    answer->uid = entry.idiag_uid;
    answer->inode = entry.idiag_inode;
    answer->local = clinux_endpoint_make(entry.idiag_family, entry.id.idiag_src, &entry.id.idiag_sport);
    answer->remote = clinux_endpoint_make(entry.idiag_family, entry.id.idiag_dst, &entry.id.idiag_dport);
    return 1;
}

#endif
