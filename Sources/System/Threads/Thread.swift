// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// A start of a thread that runs `body` and ends; throws if there can be no more threads, and then `body` never runs.
package typealias ThreadStart = @Sendable (_ body: @escaping @Sendable () -> Void) throws(ThreadError) -> Void

/// Failure to start a thread: the machine or the unit allows no more.
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

/// A thread of the system. Somebody must call `join` or `detach`, once.
package struct Thread: Sendable {
    private let handle: pthread_t

    /// Starts a thread for `body`; of `name` the kernel keeps 15 bytes. Throws if there can be no more threads.
    ///
    /// `body` is not run then, neither here, where it might block an event loop, nor later.
    ///
    /// All signals are blocked on the thread: they are the main thread's, and a write to a pipe or connection that nobody reads any
    /// more is an error there, not the end of the process. A child process started from it inherits the mask unless told otherwise.
    package init(named name: String? = nil, _ body: @escaping @Sendable () -> Void) throws(ThreadError) {
        try self.init(named: name, stackSize: nil, body)
    }

    /// The same, with a stack of `stackSize` bytes: one that cannot be had shows what a machine without memory does.
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

    /// Waits until the thread has ended. To be called once, on another thread.
    package func join() { _ = pthread_join(handle, nil) }

    /// Lets the thread go: nobody will wait for its end.
    package func detach() { _ = pthread_detach(handle) }
}

/// Starts a thread for `body`, which nobody waits for. Throws if there can be no more threads: `body` is not run then.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(ThreadError) {
    try Thread(body).detach()
}

/// Runs `body`, which may block, on a thread of its own, and returns its result to the caller's executor.
///
/// Neither an event loop nor one of the few threads of the global pool must wait for a disk or a helper.
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
        // A name is a help to the reader of `top -H`; without it the thread works as well.
        if let name { _ = unsafe name.withCString { unsafe clinux_set_thread_name($0) } }
        run()
    }
}
