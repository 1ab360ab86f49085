// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors
//
// Preloaded into a program, counts its calls that can fail, and makes one of them fail: the nth of its name since the runner armed
// the control page, which both map (TORTURE_PAGE). Each line of TORTURE_LOG is a call: its name, number, error and backtrace.
//
// Only calls of the objects in `tortured` count, not those of libc, the Swift runtime or the loader. Calls that cannot fail with
// the arguments in use, or that no program survives, are left out: close, eventfd_write, clocks, epoll_ctl's DEL, random numbers.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

// The page that `faults.py` writes: the same members in the same order.
struct page {
    _Atomic uint32_t armed, nth, lasting, fired, tracing;
    char name[44];
    _Atomic uint32_t counts[128];
};

static struct page nothing, *page = &nothing;
static const char *log_path;
// Another error than that of the call (TORTURE_ERROR): only for what can fail with any, reads and opens of files.
static int other_error, is_short;
static __thread int inside;

// The addresses of a loaded object whose calls count; only the first is the program itself.
struct range { uintptr_t begin, end; int is_library; };
static struct range ranges[16];
static int range_count;
static const char *const libraries[] = {"libcurl.so", "libnghttp2.so", "libsystemd.so"};
static const char *const tortured[] = {"libFoundationEssentials.so", "libswiftGlibc.so"};

static int remember(struct dl_phdr_info *object, size_t size, void *first) {
    (void)size;
    int is_library = 0, counts = *(int *)first;
    *(int *)first = 0;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strstr(object->dlpi_name, libraries[i])) counts = is_library = 1;
    for (size_t i = 0; i < sizeof tortured / sizeof *tortured; i++)
        if (strstr(object->dlpi_name, tortured[i])) counts = 1;
    for (int i = 0; counts && i < object->dlpi_phnum && range_count < 16; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        ranges[range_count++] = (struct range){begin, begin + part->p_memsz, is_library};
    }
    return 0;
}

static const struct range *range_of(const void *address) {
    for (int i = 0; i < range_count; i++)
        if ((uintptr_t)address >= ranges[i].begin && (uintptr_t)address < ranges[i].end) return &ranges[i];
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TORTURE_PAGE"), *program = getenv("TORTURE_PROGRAM");
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!path || !program || length < 0) return;
    self[length] = 0;
    // Child processes of the program inherit this library, and are ignored.
    if (strcmp(self, program)) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = (void *)syscall(SYS_mmap, NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    log_path = getenv("TORTURE_LOG");
    const char *error = getenv("TORTURE_ERROR");
    is_short = error && !strcmp(error, "short");
    other_error = error ? atoi(error) : 0;
    int first = 1;
    dl_iterate_phdr(remember, &first);
    void *frames[4];
    backtrace(frames, 4);  // The first call loads a library.
    if (mapped != MAP_FAILED) page = mapped;
}

// Appends a line about the call: where each frame is in its object. The hash of the program's frames is the call's site.
static void trace(const char *name, uint32_t number, int error) {
    void *frames[24];
    char line[2048];
    int count = backtrace(frames, 24), length = 0;
    uint64_t site = 14695981039346656037ULL;
    char places[1500];
    for (int i = 2; i < count && length < 1400; i++) {
        Dl_info object;
        if (!dladdr(frames[i], &object)) continue;
        const char *base = strrchr(object.dli_fname, '/');
        uintptr_t offset = (uintptr_t)frames[i] - (uintptr_t)object.dli_fbase;
        if (i < 10 && range_of(frames[i])) site = (site ^ offset) * 1099511628211ULL;
        length += snprintf(places + length, sizeof places - (size_t)length, " %.40s+%#lx", base ? base + 1 : object.dli_fname, offset);
    }
    places[length] = 0;
    int total = snprintf(line, sizeof line, "%s %u %d %llx%s\n", name, number, error, (unsigned long long)site, places);
    int file = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    syscall(SYS_write, file, line, (size_t)total);
    syscall(SYS_close, file);
}

// Counts a call, and returns true if it has to fail with `error`.
static int fails_on(int index, const char *name, int error, const void *caller, int only_libraries, int fd) {
    if (!atomic_load_explicit(&page->armed, memory_order_relaxed) || inside) return 0;
    const struct range *range = range_of(caller);
    if (!range || (only_libraries && !range->is_library)) return 0;
    int saved = errno, hit = 0;
    inside = 1;
    uint32_t number = atomic_fetch_add(&page->counts[index], 1) + 1;
    if (!strcmp(page->name, name)) {
        uint32_t nth = atomic_load(&page->nth);
        hit = number == nth || (number > nth && atomic_load(&page->lasting));
    }
    if (hit || atomic_load(&page->tracing)) trace(name, number, hit ? error : 0);
    if (hit) atomic_fetch_add(&page->fired, 1);
    // A connection that is reset is so for both sides: else its owner would rightly wait for an answer.
    if (hit && error == ECONNRESET) syscall(SYS_shutdown, fd, SHUT_RDWR);
    inside = 0;
    errno = hit ? error : saved;
    return hit;
}

static int fails(int index, const char *name, int error, const void *caller, int only_libraries) {
    return fails_on(index, name, error, caller, only_libraries, -1);
}

// The error of an operation on the object of a descriptor: a connection is reset, a disk fails.
static int error_of(int fd, int socket_error, int file_error) {
    struct stat status;
    int saved = errno, result = file_error;
    if (!syscall(SYS_fstat, fd, &status) && S_ISSOCK(status.st_mode)) result = socket_error;
    errno = saved;
    return result;
}

#define CALLER __builtin_return_address(0)
#define NEXT(name) ({ static __typeof__(&name) next; if (!next) { inside++; next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); inside--; } next; })
// A call: how it is declared, what it passes on, its error, and what it then returns.
#define WRAP_FD(type, name, declared, passed, error) \
    type name declared { \
        if (fails_on(__COUNTER__, #name, error, CALLER, 0, fd)) return -1; \
        return NEXT(name) passed; \
    }
#define WRAP(type, name, declared, passed, error, failure) \
    type name declared { \
        if (fails(__COUNTER__, #name, error, CALLER, 0)) return failure; \
        return NEXT(name) passed; \
    }

WRAP(FILE *, fopen64, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
WRAP(DIR *, fdopendir, (int fd), (fd), ENOMEM, NULL)

// A read that fails, or gives one byte of what there is.
ssize_t read(int fd, void *to, size_t size) {
    if (!fails_on(__COUNTER__, "read", error_of(fd, ECONNRESET, other_error ? other_error : EIO), CALLER, 0, fd)) return NEXT(read)(fd, to, size);
    return is_short && size ? NEXT(read)(fd, to, 1) : -1;
}

WRAP(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), EIO, -1)
WRAP(ssize_t, pread64, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), EIO, -1)
WRAP_FD(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), error_of(fd, ECONNRESET, ENOSPC))
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), ENOSPC, -1)
WRAP(ssize_t, pwrite64, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), ENOSPC, -1)
WRAP(int, fsync, (int fd), (fd), EIO, -1)
WRAP(int, fdatasync, (int fd), (fd), EIO, -1)
WRAP(int, flock, (int fd, int operation), (fd, operation), ENOLCK, -1)
WRAP(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group), EPERM, -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), EIO, -1)
WRAP(int, chmod, (const char *path, mode_t mode), (path, mode), EIO, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), ENOSPC, -1)
WRAP(int, link, (const char *from, const char *to), (from, to), ENOSPC, -1)
WRAP(int, unlink, (const char *path), (path), EIO, -1)
WRAP(int, renameat, (int at, const char *from, int in, const char *to), (at, from, in, to), ENOSPC, -1)
WRAP(int, linkat, (int at, const char *from, int in, const char *to, int flags), (at, from, in, to, flags), ENOSPC, -1)
WRAP(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), EIO, -1)
WRAP(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), ENOSPC, -1)
WRAP(int, fstatat, (int at, const char *path, struct stat *to, int flags), (at, path, to, flags), EIO, -1)
WRAP(ssize_t, readlinkat, (int at, const char *path, char *to, size_t size), (at, path, to, size), EIO, -1)
WRAP(int, rmdir, (const char *path), (path), EIO, -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
WRAP(char *, mkdtemp, (char *pattern), (pattern), ENOSPC, NULL)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), EIO, -1)
WRAP(int, stat, (const char *path, struct stat *to), (path, to), EIO, -1)
WRAP(int, lstat, (const char *path, struct stat *to), (path, to), EIO, -1)
WRAP(int, fstat, (int fd, struct stat *to), (fd, to), EIO, -1)
WRAP(int, fstatvfs, (int fd, struct statvfs *to), (fd, to), EIO, -1)
WRAP(int, access, (const char *path, int mode), (path, mode), EIO, -1)
WRAP(char *, realpath, (const char *path, char *to), (path, to), EIO, NULL)
WRAP(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size), EIO, -1)
WRAP(int, socket, (int family, int type, int protocol), (family, type, protocol), EMFILE, -1)
WRAP(int, socketpair, (int family, int type, int protocol, int to[2]), (family, type, protocol, to), EMFILE, -1)
WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), ECONNREFUSED, -1)
WRAP(int, bind, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), EADDRINUSE, -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), EADDRINUSE, -1)
WRAP(int, accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size), EMFILE, -1)
WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags), EMFILE, -1)
WRAP_FD(ssize_t, send, (int fd, const void *from, size_t size, int flags), (fd, from, size, flags), ECONNRESET)
WRAP(ssize_t, sendto, (int fd, const void *from, size_t size, int flags, const struct sockaddr *to, socklen_t length),
    (fd, from, size, flags, to, length), ENOBUFS, -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), ENOBUFS, -1)
WRAP_FD(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags), ECONNRESET)
WRAP(ssize_t, recvfrom, (int fd, void *to, size_t size, int flags, struct sockaddr *from, socklen_t *length),
    (fd, to, size, flags, from, length), ENOMEM, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), ENOMEM, -1)
WRAP(int, shutdown, (int fd, int how), (fd, how), ENOTCONN, -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *to, socklen_t *size), (fd, level, name, to, size), ENOBUFS, -1)
WRAP(int, getsockname, (int fd, struct sockaddr *to, socklen_t *size), (fd, to, size), ENOBUFS, -1)
WRAP(int, getpeername, (int fd, struct sockaddr *to, socklen_t *size), (fd, to, size), ENOTCONN, -1)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, -1)
WRAP(int, epoll_wait, (int fd, struct epoll_event *to, int size, int time), (fd, to, size, time), EINTR, -1)
WRAP(int, poll, (struct pollfd *fds, nfds_t size, int time), (fds, size, time), EINTR, -1)
WRAP(int, eventfd, (unsigned value, int flags), (value, flags), EMFILE, -1)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, -1)
WRAP(int, pipe, (int to[2]), (to), EMFILE, -1)
WRAP(int, pipe2, (int to[2], int flags), (to, flags), EMFILE, -1)
WRAP(int, dup, (int fd), (fd), EMFILE, -1)
WRAP(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t from), (at, size, protection, flags, fd, from), ENOMEM, MAP_FAILED)
WRAP(int, mlock, (const void *at, size_t size), (at, size), ENOMEM, -1)
WRAP(int, setrlimit, (__rlimit_resource_t which, const struct rlimit *to), (which, to), EPERM, -1)
WRAP(struct passwd *, getpwnam, (const char *name), (name), EMFILE, NULL)
WRAP(pid_t, waitpid, (pid_t child, int *to, int flags), (child, to, flags), EINTR, -1)
WRAP(int, sigtimedwait, (const sigset_t *set, siginfo_t *to, const struct timespec *time), (set, to, time), EINTR, -1)
// These return the error, and not -1.
WRAP(int, pthread_create, (pthread_t *to, const pthread_attr_t *with, void *(*run)(void *), void *value), (to, with, run, value), EAGAIN, EAGAIN)
WRAP(int, posix_spawn, (pid_t *to, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *with,
    char *const *arguments, char *const *variables), (to, path, actions, with, arguments, variables), EAGAIN, EAGAIN)
WRAP(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *to, int from, int as), (to, from, as), ENOMEM, ENOMEM)
WRAP(int, getaddrinfo, (const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **to),
    (host, service, hints, to), EAGAIN, EAI_AGAIN)

#define MODE(last) ({ mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, last); mode = va_arg(list, mode_t); va_end(list); } mode; })

int open(const char *path, int flags, ...) {
    if (fails(__COUNTER__, "open", other_error ? other_error : EMFILE, CALLER, 0)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, MODE(flags));
}

int open64(const char *path, int flags, ...) {
    if (fails(__COUNTER__, "open64", other_error ? other_error : EMFILE, CALLER, 0)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, MODE(flags));
}

int openat(int at, const char *path, int flags, ...) {
    if (fails(__COUNTER__, "openat", other_error ? other_error : EMFILE, CALLER, 0)) return -1;
    return (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, MODE(flags));
}

int fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void *value = va_arg(list, void *);
    va_end(list);
    int can_fail = command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_ADD_SEALS || command == F_SETLK || command == F_SETLKW;
    if (can_fail && fails(__COUNTER__, "fcntl", EMFILE, CALLER, 0)) return -1;
    return NEXT(fcntl)(fd, command, value);
}

// Nothing has the kernel refuse SO_REUSEADDR.
int setsockopt(int fd, int level, int name, const void *from, socklen_t size) {
    int can_fail = level != SOL_SOCKET || name != SO_REUSEADDR;
    if (can_fail && fails(__COUNTER__, "setsockopt", ENOBUFS, CALLER, 0)) return -1;
    return NEXT(setsockopt)(fd, level, name, from, size);
}

int epoll_ctl(int fd, int operation, int on, struct epoll_event *event) {
    if (operation != EPOLL_CTL_DEL && fails(__COUNTER__, "epoll_ctl", ENOSPC, CALLER, 0)) return -1;
    return NEXT(epoll_ctl)(fd, operation, on, event);
}

// The memory of the C libraries: the Swift runtime ends the process if it gets none.
void *malloc(size_t size) {
    return fails(__COUNTER__, "malloc", ENOMEM, CALLER, 1) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails(__COUNTER__, "calloc", ENOMEM, CALLER, 1) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return size && fails(__COUNTER__, "realloc", ENOMEM, CALLER, 1) ? NULL : __libc_realloc(old, size);
}

char *strdup(const char *text) {
    if (fails(__COUNTER__, "strdup", ENOMEM, CALLER, 1)) return NULL;
    size_t size = strlen(text) + 1;
    char *copy = __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}
