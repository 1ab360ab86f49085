// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// Function that starts a thread which runs `body` and ends. Throws, without running `body`, if no thread can be
/// started.
package typealias ThreadStart = @Sendable (_ body: @escaping @Sendable () -> Void) throws(ThreadError) -> Void

/// Failure to start a thread: the limit of the machine or the unit is reached.
package struct ThreadError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The error number of `pthread_create`.
    package var code: Int32

    /// An error of that number.
    package init(code: Int32) { self.code = code }

    /// The failure, and its usual causes.
    package var description: String {
        "no thread could be started (\(SystemError.message(code))); look at `TasksMax=` of the unit and at the memory of the machine"
    }
}

/// Thread of the system. Exactly one of `join` and `detach` must be called, once.
package struct Thread: Sendable {
    private let handle: pthread_t

    /// Starts a thread for `body`; the kernel keeps 15 bytes of `name`. Throws if no thread can be started.
    ///
    /// On an error `body` never runs, neither here, where it might block an event loop, nor later.
    ///
    /// All signals are blocked on the thread, because the main thread handles them; a write to a closed pipe or
    /// connection is an error there and does not end the process. A child process started from the thread inherits the
    /// mask unless it is reset.
    package init(named name: String? = nil, _ body: @escaping @Sendable () -> Void) throws(ThreadError) {
        try self.init(named: name, stackSize: nil, body)
    }

    /// Starts a thread with a stack of `stackSize` bytes; a size that is too large simulates a machine without memory.
    init(named name: String?, stackSize: Int?, _ body: @escaping @Sendable () -> Void) throws(ThreadError) {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        if let stackSize { unsafe pthread_attr_setstacksize(&attributes, stackSize) }
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
        let job = unsafe Unmanaged.passRetained(Job(name: name, run: body))
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().start()
                return nil
            }, job.toOpaque())
        guard code == 0 else {
            unsafe job.release()
            throw ThreadError(code: code)
        }
        handle = thread
    }

    /// Waits until the thread has ended. Call this once, on another thread.
    package func join() { _ = pthread_join(handle, nil) }

    /// Detaches the thread: its end is not waited for.
    package func detach() { _ = pthread_detach(handle) }
}

/// Starts a detached thread for `body`. Throws, without running `body`, if no thread can be started.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(ThreadError) {
    try Thread(body).detach()
}

/// Runs `body`, which may block, on its own thread, and returns its result to the caller's executor.
///
/// Neither an event loop nor one of the few threads of the global pool may wait for a disk or a helper.
package func onOwnThread<Value: Sendable>(
    _ start: ThreadStart = startThread, _ body: @escaping @Sendable () -> Value
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

/// The work of a new thread.
private final class Job: Sendable {
    let name: String?
    let run: @Sendable () -> Void

    init(name: String?, run: @escaping @Sendable () -> Void) {
        self.name = name
        self.run = run
    }

    func start() {
        // The name only helps a reader of `top -H`; the thread works without it.
        if let name { _ = unsafe name.withCString { unsafe clinux_set_thread_name($0) } }
        run()
    }
}
