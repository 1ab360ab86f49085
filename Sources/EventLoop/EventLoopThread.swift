// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// A thread that turns one loop.
public final class EventLoopThread: Sendable {
    /// The loop.
    public let loop: EventLoop
    private let thread: pthread_t

    /// What the new thread is given.
    private final class Start {
        let loop: EventLoop
        let name: String
        let setUp: @Sendable (EventLoop) -> Void

        init(loop: EventLoop, name: String, setUp: @escaping @Sendable (EventLoop) -> Void) {
            self.loop = loop
            self.name = name
            self.setUp = setUp
        }
    }

    /// Starts a thread of that name (15 bytes are kept), which calls `setUp` and then turns a new loop.
    ///
    /// All signals are blocked on it: they are the main thread's. That also keeps SIGPIPE away, which OpenSSL's writes
    /// to a dead connection would raise. A child process started from here inherits the mask unless told otherwise.
    ///
    /// The loop's time is the system's, or that of a clock that is turned by hand.
    public init(
        name: String, clock: ManualLoopClock? = nil, setUp: @escaping @Sendable (EventLoop) -> Void
    ) throws(EventLoopError) {
        loop = try EventLoop(clock: clock)
        let start = Start(loop: loop, name: name, setUp: setUp)
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
        var thread = pthread_t()
        let argument = unsafe Unmanaged.passRetained(start)
        let result = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                EventLoopThread.main(start)
                return nil
            }, argument.toOpaque())
        guard result == 0 else {
            unsafe argument.release()
            throw EventLoopError(call: "pthread_create", errno: result)
        }
        self.thread = thread
    }

    /// Waits until the loop has stopped. To be called once, on another thread.
    public func join() {
        _ = pthread_join(thread, nil)
    }

    /// Nobody will wait: the thread is gone when its loop has stopped. In place of `join`.
    public func detach() {
        _ = pthread_detach(thread)
    }

    private static func main(_ start: Start) {
        // A name is a help to the reader of `top -H`; without it the thread works as well.
        _ = unsafe start.name.withCString { unsafe clinux_set_thread_name($0) }
        start.loop.adoptThread()
        start.setUp(start.loop)
        start.loop.run()
    }
}
