// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import Synchronization
internal import System

/// Work for the loop's thread.
enum LoopJob {
    /// Nothing: a wake-up, or a job that was already taken.
    case none
    /// A function.
    case call(@Sendable () -> Void)
    /// A job of an `async` function.
    case task(UnownedJob)
}

/// Queue of jobs from other threads to the loop, with one wake-up per batch.
struct Mailbox: ~Copyable {
    private struct Content {
        var jobs: [LoopJob] = []
        /// True if the loop has been woken for the current content.
        var isSignalled = false
    }

    /// Eventfd that wakes the loop.
    let eventfd: Int32
    private let content = Mutex(Content())

    init() throws(EventLoopError) {
        eventfd = try EventLoopError.check(clinux_eventfd(), "eventfd")
    }

    deinit {
        close(eventfd)
    }

    /// Enqueues a job, on any thread.
    func enqueue(_ job: consuming sending LoopJob) {
        let job = job
        let wasSignalled = content.withLock { content in
            content.jobs.append(job)
            defer { content.isSignalled = true }
            return content.isSignalled
        }
        if !wasSignalled { wake() }
    }

    /// Wakes the loop, on any thread.
    func wake() {
        // Can fail only at a count of 2^64 - 1.
        _ = clinux_eventfd_signal(eventfd)
    }

    /// Moves all jobs to the end of `queue`.
    func drain(into queue: inout JobQueue) {
        content.withLock { content in
            content.isSignalled = false
            for job in content.jobs { queue.append(job) }
            content.jobs.removeAll(keepingCapacity: true)
        }
    }
}

/// First-in, first-out queue in an array that retains its memory.
struct JobQueue {
    private var jobs: [LoopJob] = []
    private var head = 0

    var isEmpty: Bool { head == jobs.count }
    var count: Int { jobs.count - head }

    mutating func append(_ job: LoopJob) {
        // If the queue is never empty, the consumed part must be removed now and then.
        if head >= 1024, head * 2 > jobs.count {
            jobs.removeFirst(head)
            head = 0
        }
        jobs.append(job)
    }

    mutating func popFirst() -> LoopJob? {
        guard head < jobs.count else { return nil }
        let job = jobs[head]
        jobs[head] = .none
        head += 1
        if head == jobs.count {
            jobs.removeAll(keepingCapacity: true)
            head = 0
        }
        return job
    }
}

/// Failure to create a system resource of a loop.
public struct EventLoopError: Error, Equatable, CustomStringConvertible {
    /// Failed call, for example `epoll_create1`.
    public let call: String
    /// Error number.
    public let errno: Int32

    /// Failed call and its error.
    public var description: String {
        "\(call): \(SystemError.message(errno))"
    }

    /// Returns the result of a call, or throws if it is a negated error number.
    static func check(_ result: Int32, _ call: String) throws(EventLoopError) -> Int32 {
        guard result >= 0 else { throw EventLoopError(call: call, errno: -result) }
        return result
    }
}
