// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import System

/// A thread that turns one loop.
public final class EventLoopThread: Sendable {
    /// The loop.
    public let loop: EventLoop
    private let thread: Thread

    /// Starts a thread of that name (15 bytes are kept), which calls `setUp` and then turns a new loop.
    ///
    /// All signals are blocked on it: they are the main thread's. That also keeps SIGPIPE away, which OpenSSL's writes
    /// to a dead connection would raise. A child process started from here inherits the mask unless told otherwise.
    ///
    /// The loop's time is the system's, or that of a clock that is turned by hand.
    public init(
        name: String, clock: ManualLoopClock? = nil, setUp: @escaping @Sendable (EventLoop) -> Void
    ) throws(EventLoopError) {
        let loop = try EventLoop(clock: clock)
        self.loop = loop
        do throws(ThreadError) {
            thread = try Thread(named: name) {
                loop.adoptThread()
                setUp(loop)
                loop.run()
            }
        } catch {
            throw EventLoopError(call: "pthread_create", errno: error.code)
        }
    }

    /// Waits until the loop has stopped. To be called once, on another thread.
    public func join() {
        thread.join()
    }

    /// Nobody will wait: the thread is gone when its loop has stopped. In place of `join`.
    public func detach() {
        thread.detach()
    }
}
