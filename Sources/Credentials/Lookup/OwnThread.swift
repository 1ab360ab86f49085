// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Runs `body`, which may block, on a thread that is made for it, and returns its result to the caller's executor. Look-ups
/// are rare; neither an event loop nor one of the few threads of the global pool must wait for a disk or a helper.
func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        startThread { continuation.resume(returning: body()) }
    }
}

/// Starts a thread that does `body` and ends. Where there can be no more threads, does it at once.
package func startThread(_ body: @escaping @Sendable () -> Void) {
    let job = Job(body)
    let reference = unsafe Unmanaged.passRetained(job)
    var thread = pthread_t()
    let status = unsafe pthread_create(&thread, nil, runJob, reference.toOpaque())
    guard status == 0 else {
        unsafe reference.release()
        job.run()
        return
    }
    pthread_detach(thread)
}

/// Where the thread begins.
private func runJob(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context = unsafe context else { return nil }
    unsafe Unmanaged<Job>.fromOpaque(context).takeRetainedValue().run()
    return nil
}

/// What a thread is given to do.
private final class Job: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
        self.run = run
    }
}
