// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Kernel and libc calls that Swift's Glibc module does not export. Calls that fail return the negated error number, so
// that callers do not read `errno`.

#ifndef CLINUX_SHIM_H
#define CLINUX_SHIM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

// Declared here, because with _GNU_SOURCE the headers would define types otherwise than Swift's Glibc module does, and
// Swift refuses a program with two definitions of fd_set.
extern int malloc_trim(size_t pad);
extern int posix_spawn_file_actions_addclosefrom_np(void *_Nonnull actions, int first);
extern int pipe2(int ends[_Nonnull 2], int flags);
extern int accept4(int fd, struct sockaddr *_Nullable address, socklen_t *_Nullable length, int flags);
struct clinux_ucred {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

/// Maximum number of events that one `clinux_epoll_wait` returns.
#define CLINUX_EVENTS 256

/// `struct epoll_event` without its union, which strict memory safety flags at every touch, and without its packing.
struct clinux_event {
    uint64_t data;
    uint32_t events;
};

/// A new epoll instance, closed on exec.
static inline int clinux_epoll_create(void) {
    int result = epoll_create1(EPOLL_CLOEXEC);
    return result < 0 ? -errno : result;
}

/// `epoll_ctl` with the event's two members as arguments.
static inline int clinux_epoll_control(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return epoll_ctl(epoll, operation, fd, &event) < 0 ? -errno : 0;
}

/// Waits for at most `milliseconds` (-1: without limit) and fills at most CLINUX_EVENTS of `events`; returns their
/// number.
static inline int clinux_epoll_wait(int epoll, struct clinux_event *_Nonnull events, int milliseconds) {
    struct epoll_event raw[CLINUX_EVENTS];
    int count = epoll_wait(epoll, raw, CLINUX_EVENTS, milliseconds);
    if (count < 0) return -errno;
    for (int i = 0; i < count; i++) {
        events[i].data = raw[i].data.u64;
        events[i].events = raw[i].events;
    }
    return count;
}

/// Creates an eventfd: nonblocking, closed on exec, counting from 0.
static inline int clinux_eventfd(void) {
    int result = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return result < 0 ? -errno : result;
}

/// Adds 1 to an eventfd's counter, which wakes its waiter.
static inline int clinux_eventfd_signal(int fd) {
    return eventfd_write(fd, 1) < 0 ? -errno : 0;
}

/// `accept4` without the peer's address: a nonblocking descriptor, closed on exec.
static inline int clinux_accept(int fd) {
    int result = accept4(fd, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return result < 0 ? -errno : result;
}

/// `accept4` with the peer's address: a nonblocking descriptor, closed on exec.
static inline int clinux_accept_from(
    int fd, struct sockaddr_storage *_Nonnull address, socklen_t *_Nonnull length) {
    *length = sizeof *address;
    int result = accept4(fd, (struct sockaddr *)address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return result < 0 ? -errno : result;
}

/// Creates a nonblocking socket, closed on exec (in Swift the two flags are an enumeration that does not combine).
static inline int clinux_socket(int domain, int type) {
    int result = socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return result < 0 ? -errno : result;
}

/// Makes a started program close `first` and all higher descriptors, even above the limit of open files. `actions` is a
/// `posix_spawn_file_actions_t`, whose header is left to Swift's Glibc module.
static inline int clinux_spawn_close_from(void *_Nonnull actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

/// Creates a pipe, closed on exec from the first moment: a process that another thread starts meanwhile inherits
/// neither end.
static inline int clinux_pipe(int *_Nonnull reader, int *_Nonnull writer) {
    int ends[2];
    // O_CLOEXEC, as SOCK_CLOEXEC of the same value.
    if (pipe2(ends, SOCK_CLOEXEC) < 0) return -errno;
    *reader = ends[0];
    *writer = ends[1];
    return 0;
}

/// Gets the user ID with which the peer of a connected Unix socket called `connect` (SO_PEERCRED, unix(7)).
static inline int clinux_peer_uid(int fd, uint32_t *_Nonnull uid) {
    struct clinux_ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) return -errno;
    *uid = credentials.uid;
    return 0;
}

/// Receives a datagram with the user ID of its sender, which the kernel adds because of SO_PASSCRED (unix(7)). Returns
/// its length, even if that exceeds `length`. A sender that the kernel does not name is UINT32_MAX.
static inline ssize_t clinux_receive_with_uid(
    int fd, uint8_t *_Nonnull bytes, size_t length, uint32_t *_Nonnull uid) {
    struct iovec part = {.iov_base = bytes, .iov_len = length};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct clinux_ucred))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_TRUNC);
    if (count < 0) return -errno;
    *uid = UINT32_MAX;
    for (struct cmsghdr *next = CMSG_FIRSTHDR(&message); next; next = CMSG_NXTHDR(&message, next))
        if (next->cmsg_level == SOL_SOCKET && next->cmsg_type == 2 /* SCM_CREDENTIALS */
            && next->cmsg_len >= CMSG_LEN(sizeof(struct clinux_ucred)))
            *uid = ((const struct clinux_ucred *)CMSG_DATA(next))->uid;
    return count;
}

/// Makes a socket drop all further input from the network (SO_ATTACH_FILTER, socket(7)).
static inline int clinux_deafen(int fd) {
    // Declared as in linux/filter.h, which conflicts with Swift's Glibc module. The only instruction: return 0.
    struct {
        uint16_t code;
        uint8_t jt, jf;
        uint32_t k;
    } nothing = {.code = 6};
    struct {
        unsigned short length;
        void *_Nonnull instructions;
    } program = {1, &nothing};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0 ? -errno : 0;
}

/// Makes the allocator return unused pages to the kernel (malloc_trim(3)).
static inline void clinux_return_memory(void) {
    malloc_trim(0);
}

/// Disables core dumps of the process, and tracing by others of its user (PR_SET_DUMPABLE, prctl(2)).
static inline int clinux_forbid_dumps(void) {
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

/// As linux/memfd.h and linux/fcntl.h have them.
#define CLINUX_MFD_CLOEXEC 0x1U
#define CLINUX_MFD_ALLOW_SEALING 0x2U
#define CLINUX_MFD_NOEXEC_SEAL 0x8U
#define CLINUX_F_ADD_SEALS 1033
#define CLINUX_F_GET_SEALS 1034
#define CLINUX_SEALS (0x1 | 0x2 | 0x4 | 0x8)
extern int memfd_create(const char *_Nonnull name, unsigned int flags);
extern int fcntl(int fd, int command, ...);

/// Creates a file in memory that cannot be executed, closed on exec (memfd_create(2)).
static inline int clinux_memory_file(const char *_Nonnull name) {
    unsigned int flags = CLINUX_MFD_CLOEXEC | CLINUX_MFD_ALLOW_SEALING;
    int result = memfd_create(name, flags | CLINUX_MFD_NOEXEC_SEAL);
    // Kernels before 6.3 do not know that flag.
    if (result < 0 && errno == EINVAL) result = memfd_create(name, flags);
    return result < 0 ? -errno : result;
}

/// Seals a file in memory forever: no writes, no change of length, no removal of seals.
static inline int clinux_seal(int fd) {
    return fcntl(fd, CLINUX_F_ADD_SEALS, CLINUX_SEALS) < 0 ? -errno : 0;
}

/// True if a descriptor is a sealed file in memory.
static inline int clinux_is_sealed(int fd) {
    int seals = fcntl(fd, CLINUX_F_GET_SEALS);
    return seals >= 0 && (seals & CLINUX_SEALS) == CLINUX_SEALS;
}

/// Locks a byte of a file for this open file description, or unlocks it (F_OFD_SETLK, fcntl(2)). Does not wait: -EAGAIN if another
/// description has it, of this process or another one.
static inline int clinux_lock_byte(int fd, int64_t offset, int is_locked) {
    // Declared as in fcntl.h, whose names conflict with Swift's Glibc module; the same on all 64-bit machines.
    struct {
        short type, whence;
        int64_t start, length;
        int32_t process;
    } lock = {.type = is_locked ? 1 /* F_WRLCK */ : 2 /* F_UNLCK */, .start = offset, .length = 1};
    return fcntl(fd, 37 /* F_OFD_SETLK */, &lock) < 0 ? -errno : 0;
}

extern long syscall(long number, ...);

/// Opens a descriptor of a process, closed on exec, which becomes readable when the process ends (pidfd_open(2)).
static inline int clinux_process_descriptor(int32_t process) {
    // The same number on all machines; a flag of 0.
    long result = syscall(434, (long)process, 0L);
    return result < 0 ? -errno : (int)result;
}

/// Sends a signal to the process of a descriptor (pidfd_send_signal(2)).
static inline int clinux_signal_process(int descriptor, int signal) {
    long result = syscall(424, (long)descriptor, (long)signal, 0L, 0L);
    return result < 0 ? -errno : 0;
}

/// Names the calling thread; the kernel keeps 15 bytes.
static inline int clinux_set_thread_name(const char *_Nonnull name) {
    return prctl(PR_SET_NAME, name, 0, 0, 0) < 0 ? -errno : 0;
}

#endif
