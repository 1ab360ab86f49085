// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import Synchronization

/// Something to run on the loop's thread.
enum LoopJob {
    /// Nothing: a wake-up, or a job that has been taken.
    case none
    /// A function.
    case call(@Sendable () -> Void)
    /// A piece of an `async` function.
    case task(UnownedJob)
}

/// Jobs on their way from other threads to the loop. One wake-up goes with each batch, however many jobs it holds.
struct Mailbox: ~Copyable {
    private struct Content {
        var jobs: [LoopJob] = []
        /// True if the loop has been woken for what is in here.
        var isSignalled = false
    }

    /// The eventfd that wakes the loop.
    let eventfd: Int32
    private let content = Mutex(Content())

    init() throws(EventLoopError) {
        eventfd = try EventLoopError.check(clinux_eventfd(), "eventfd")
    }

    deinit {
        close(eventfd)
    }

    /// Leaves a job, from any thread.
    func put(_ job: consuming sending LoopJob) {
        let job = job
        let wasSignalled = content.withLock { content in
            content.jobs.append(job)
            defer { content.isSignalled = true }
            return content.isSignalled
        }
        if !wasSignalled { wake() }
    }

    /// Wakes the loop, from any thread.
    func wake() {
        // It could only fail at a count of 2^64 - 1.
        _ = clinux_eventfd_signal(eventfd)
    }

    /// Moves all that is there to the end of `queue`.
    func empty(into queue: inout JobQueue) {
        content.withLock { content in
            content.isSignalled = false
            for job in content.jobs { queue.append(job) }
            content.jobs.removeAll(keepingCapacity: true)
        }
    }
}

/// First in, first out, in an array that keeps its memory.
struct JobQueue {
    private var jobs: [LoopJob] = []
    private var head = 0

    var isEmpty: Bool { head == jobs.count }
    var count: Int { jobs.count - head }

    mutating func append(_ job: LoopJob) {
        // With a queue that never runs dry the taken part has to go now and then.
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
