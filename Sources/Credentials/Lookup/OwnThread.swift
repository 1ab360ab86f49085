// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Starts a thread that does what it is given, and ends; throws where there can be no more threads, and then nothing was done.
package typealias ThreadStart = @Sendable (_ body: @escaping @Sendable () -> Void) throws(ThreadError) -> Void

/// No thread could be started: the machine or the unit allows no more.
package struct ThreadError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The number of the error, as `pthread_create` has it.
    package var code: Int32

    /// An error.
    package init(code: Int32) { self.code = code }

    /// What happened, and where to look.
    package var description: String {
        let words = unsafe String(cString: strerror(code))
        return "no thread could be started (\(words)); look at `TasksMax=` of the unit and at the memory of the machine"
    }
}

/// Starts a thread of its own for `body`, which nobody waits for. Throws where there can be no more threads: `body` is not run
/// then, neither here, where it might block an event loop, nor later.
///
/// All signals are blocked on it: they are the main thread's, and a write to a pipe that nobody reads any more is an error there, not
/// the end of the process.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(ThreadError) {
    let job = unsafe Unmanaged.passRetained(Job(body))
    var all = sigset_t()
    var before = sigset_t()
    unsafe sigfillset(&all)
    unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    var thread = pthread_t()
    let code = unsafe pthread_create(&thread, nil, runJob, job.toOpaque())
    guard code == 0 else {
        unsafe job.release()
        throw ThreadError(code: code)
    }
    pthread_detach(thread)
}

/// Runs `body`, which may block, on a thread that is made for it, and returns its result to the caller's executor. Look-ups
/// are rare; neither an event loop nor one of the few threads of the global pool must wait for a disk or a helper.
func onOwnThread<Value: Sendable>(
    _ start: ThreadStart, _ body: @escaping @Sendable () -> Value
) async throws(ThreadError) -> Value {
    let result: Result<Value, ThreadError> = await withCheckedContinuation { continuation in
        do throws(ThreadError) {
            try start { continuation.resume(returning: .success(body())) }
        } catch {
            continuation.resume(returning: .failure(error))
        }
    }
    return try result.get()
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
