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
    /// All signals are blocked on the thread, because the main thread handles them. So there is no SIGPIPE either,
    /// which OpenSSL's writes to a dead connection would raise. A child process started from the thread inherits the
    /// mask unless it is reset.
    ///
    /// The loop uses the system's time, or a clock that is advanced by hand.
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

    /// Waits until the loop has stopped. Call this once, on another thread.
    public func join() {
        thread.join()
    }

    /// Detaches the thread, which ends when its loop has stopped. Call this instead of `join`.
    public func detach() {
        thread.detach()
    }
}
