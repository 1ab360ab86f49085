// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Reports Swift's `Mutex` to thread sanitizer. Without contention, locking and unlocking are atomic operations compiled into
// our own code, where the sanitizer sees them. A contended mutex is handed over by the kernel, in a call from
// libswiftSynchronization, which is not instrumented: the sanitizer would regard data guarded by the mutex as unguarded. So
// these two functions replace the library's and report the hand-over. A suppression would not do: one by the name of
// `withLock`, or of its callers, would also hide races of data that no mutex guards.
//
// Tied to the names and the structure of the mutex in Swift 6.3. If another Swift does not call these functions, guarded data
// are reported as racing, which is obvious; nothing is hidden then.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#if __has_feature(thread_sanitizer)

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *

// Synchronization._MutexHandle._lockSlow(_: UInt32) -> () and ._unlockSlow() -> ()
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);

SWIFT void mutex_lock_slow(uint32_t thread, SELF mutex) __asm__(LOCK_SLOW);
SWIFT void mutex_unlock_slow(SELF mutex) __asm__(UNLOCK_SLOW);

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

SWIFT void mutex_lock_slow(uint32_t thread, SELF mutex) {
    ((SWIFT void (*)(uint32_t, SELF))next(LOCK_SLOW))(thread, mutex);
    // All that was done before it was unlocked has happened before what follows.
    __tsan_acquire(mutex);
}

SWIFT void mutex_unlock_slow(SELF mutex) {
    __tsan_release(mutex);
    ((SWIFT void (*)(SELF))next(UNLOCK_SLOW))(mutex);
}

#endif
