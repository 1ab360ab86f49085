// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The record of everything that happened upstream, for tests to read and to wait for.
package final class Recorder: Sendable {
    private let state: Mutex<State>

    /// Creates a recorder without events.
    package init() { state = Mutex(State()) }

    /// The record so far.
    package var record: Record { state.withLock { $0.record } }

    /// Waits until the record satisfies the condition; `false` when the time is over first.
    package func waitUntil(
        timeout: Duration = .seconds(300), _ condition: @escaping @Sendable (Record) -> Bool
    ) async -> Bool {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        let timer = Task {
            // A cancelled sleep means that the condition came first.
            guard (try? await Task.sleep(for: timeout)) != nil else { return }
            give(up: number)
        }
        defer { timer.cancel() }
        return await withCheckedContinuation { continuation in
            let isMet = state.withLock { state in
                guard !condition(state.record) else { return true as Bool? }
                guard state.expired.remove(number) == nil else { return false }
                state.waiters[number] = Waiter(condition: condition, continuation: continuation)
                return nil
            }
            if let isMet { continuation.resume(returning: isMet) }
        }
    }

    /// Waits until that many answers to challenges have arrived, to one check or to all.
    package func waitUntil(answers count: Int, to check: String? = nil, timeout: Duration = .seconds(300)) async -> Bool
    {
        await waitUntil(timeout: timeout) { $0.answerCount(to: check) >= count }
    }

    /// Changes the record and wakes every test that waits for the change.
    func note(_ change: (inout Record) -> Void) {
        let ready = state.withLock { state in
            change(&state.record)
            let numbers = state.waiters.filter { $0.value.condition(state.record) }.map(\.key)
            return numbers.compactMap { state.waiters.removeValue(forKey: $0) }
        }
        for waiter in ready { waiter.continuation.resume(returning: true) }
    }

    private func give(up number: Int) {
        let waiter = state.withLock { state in
            let waiter = state.waiters.removeValue(forKey: number)
            // The time was over before the waiting began.
            if waiter == nil { state.expired.insert(number) }
            return waiter
        }
        waiter?.continuation.resume(returning: false)
    }

    private struct State {
        var record = Record()
        var waiters: [Int: Waiter] = [:]
        var expired: Set<Int> = []
        var lastWaiter = 0
    }

    private struct Waiter {
        var condition: @Sendable (Record) -> Bool
        var continuation: CheckedContinuation<Bool, Never>
    }
}

/// All that has happened upstream.
package struct Record: Sendable {
    /// Every request that was answered, in the order of the answers.
    package var transcript: [Entry] = []
    /// The answers that arrived, by security check, whether or not they were examined. Also `basic` and `form`, for
    /// passwords that arrived there.
    package var answers: [String: [JSON]] = [:]
    /// Number of wrong answers, by check.
    package var wrongAnswers: [String: Int] = [:]
    /// Number of right answers, by check.
    package var logins: [String: Int] = [:]
    /// The challenges issued, by security check.
    package var challenges: [String: Int] = [:]
    /// Number of clients registered (not updated).
    package var registrations = 0
    /// The scopes of the tokens issued.
    package var tokens: [String] = []
    /// The logouts, by security check.
    package var logouts: [String] = []
    /// The requests that reached a resource, past all security.
    package var hits: [Hit] = []
    /// Violations by requests, in words: any of these in a test is a fault of the client.
    package var violations: [String] = []
    /// Number of accepted connections.
    package var connections = 0
    /// Number of peers that left in the middle of a request.
    package var unfinishedRequests = 0
    /// Number of peers that left before their answer was sent.
    package var abandonedAnswers = 0
    /// The largest number of requests in work at once, by path and, under `*`, in all.
    package var maxConcurrent: [String: Int] = [:]

    /// A request and the status of its answer.
    package struct Entry: Sendable, Equatable {
        /// The method.
        package var method: String
        /// The path, without the query.
        package var path: String
        /// The status of the answer.
        package var status: Int
    }

    /// A request as a resource got it.
    package struct Hit: Sendable, Equatable {
        /// The method.
        package var method: String
        /// The path, without the query.
        package var path: String
        /// The size of the body in bytes.
        package var size: Int
        /// The SHA-256 of the body, in hexadecimal digits.
        package var digest: String
    }

    /// Returns the number of answers that arrived, to one check or to all, which counts towards a lockout.
    package func answerCount(to check: String? = nil) -> Int {
        check.map { answers[$0]?.count ?? 0 } ?? answers.values.reduce(0) { $0 + $1.count }
    }

    /// Returns the number of requests that were answered at that path, with any or with that status.
    package func count(_ method: String? = nil, _ path: String, status: Int? = nil) -> Int {
        transcript.count { entry in
            entry.path == path && (method ?? entry.method) == entry.method && (status ?? entry.status) == entry.status
        }
    }
}
