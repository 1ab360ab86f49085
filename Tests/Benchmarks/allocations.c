// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors
//
// Preloaded into a program, counts the memory that it asks for: `guard` reads the numbers while it runs, in the file that
// COUNTED_ALLOCATIONS names.

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// glibc's own, by the names that it keeps for those who put something in front of them. Asking the linker for the next
// `malloc` would itself allocate.
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static _Atomic uint64_t before_there_is_a_file[2];
static _Atomic uint64_t *counted = before_there_is_a_file;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("COUNTED_ALLOCATIONS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof before_there_is_a_file, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) counted = mapped;
}

static void count(size_t size) {
    atomic_fetch_add_explicit(&counted[0], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counted[1], size, memory_order_relaxed);
}

void *malloc(size_t size) {
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count(number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count(size);
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    count(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    count(size);
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : 12;  // ENOMEM
}
