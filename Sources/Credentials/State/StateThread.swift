// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
package import System

/// The only thread of a process that reads, seals and writes state, in the order of the requests.
///
/// A disk may take seconds for an `fsync`, while all event loops continue. The queue is limited: a blocked disk causes a limited
/// number of jobs, and then errors. No lock that a loop needs is held during a job.
package final class StateThread: Sendable {
    private let core: Core

    /// The default maximum of waiting jobs. A login waits for each of its jobs, so there are hardly more jobs than logins.
    package static let defaultLimit = 1024

    /// Creates a thread with an empty queue of at most `limit` jobs.
    ///
    /// Throws if no thread can be started, so that the failure is reported at start.
    package init(limit: Int = defaultLimit, start: ThreadStart = startThread) throws(StateError) {
        let core = Core(limit: limit)
        self.core = core
        do throws(ThreadError) {
            try start {
                Self.mark()
                while core.runNextJob() {}
            }
        } catch {
            throw StateError(reason: "no thread could be started for the state directory: \(error)")
        }
    }

    deinit {
        // The remaining jobs run before the thread ends.
        core.stop()
    }

    /// Appends a job to the queue. Returns false, and does not run the job, if the queue is full.
    package func enqueue(_ job: @escaping @Sendable () -> Void) -> Bool { core.append(job) }

    /// Runs `job` on the thread without blocking the caller's thread.
    ///
    /// Throws the error of `job`, or an error if the queue is full.
    package func run<Value: Sendable>(
        _ job: @escaping @Sendable () throws(StateError) -> Value
    ) async throws(StateError) -> Value {
        let result: Result<Value, StateError> = await withCheckedContinuation { continuation in
            let isQueued = enqueue { continuation.resume(returning: Self.result(of: job)) }
            if !isQueued { continuation.resume(returning: .failure(Self.isFull)) }
        }
        return try result.get()
    }

    /// Runs `job` on the thread and blocks the caller's thread until its end.
    ///
    /// For the start of a process, never on an event loop.
    package func wait<Value: Sendable>(
        for job: @escaping @Sendable () throws(StateError) -> Value
    ) throws(StateError) -> Value {
        let result = Promise<Result<Value, StateError>>()
        if !enqueue({ result.fulfill(Self.result(of: job)) }) { throw Self.isFull }
        return try result.wait().get()
    }

    /// Waits until no job is left, including jobs that jobs enqueue. Returns true if that was within `limit`.
    package func finish(within limit: Duration) -> Bool { core.waitUntilIdle(within: limit) }

    /// The error for a full queue.
    package static var isFull: StateError {
        StateError(
            reason: "too many writes to the state directory are waiting; check its disk, which is too slow")
    }

    private static func result<Value>(of job: () throws(StateError) -> Value) -> Result<Value, StateError> {
        do throws(StateError) {
            return .success(try job())
        } catch {
            return .failure(error)
        }
    }
}

// Debug builds stop if another thread uses a state file.
extension StateThread {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        unsafe pthread_key_create(&key, nil)
        return key
    }()

    private static func mark() { unsafe pthread_setspecific(key, UnsafeRawPointer(bitPattern: 1)) }

    /// True on a state thread.
    package static var isCurrent: Bool { unsafe pthread_getspecific(key) != nil }
}

/// The state shared by the owner and its thread.
private final class Core: Sendable {
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isBusy = false
        var hasStopped = false
    }

    private let state = Monitor(State())
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    func append(_ job: @escaping @Sendable () -> Void) -> Bool {
        state.update { state in
            guard state.jobs.count < limit else { return false }
            state.jobs.append(job)
            return true
        }
    }

    func stop() { state.update { $0.hasStopped = true } }

    func waitUntilIdle(within limit: Duration) -> Bool {
        state.wait(within: limit) { $0.jobs.isEmpty && !$0.isBusy ? () : nil } != nil
    }

    /// Waits for a job and runs it; returns false if no job will follow.
    func runNextJob() -> Bool {
        let job = state.wait { state -> (@Sendable () -> Void)?? in
            guard !state.jobs.isEmpty else { return state.hasStopped ? .some(nil) : nil }
            state.isBusy = true
            return state.jobs.removeFirst()
        }
        guard let job else { return false }
        job()
        state.update { $0.isBusy = false }
        return true
    }
}
