// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// What has happened upstream, for tests to read and to wait for.
package final class Recorder: Sendable {
    private let state: Mutex<State>

    /// A recorder that has seen nothing.
    package init() { state = Mutex(State()) }

    /// What has happened so far.
    package var record: Record { state.withLock { $0.record } }

    /// Waits until what has happened satisfies the condition; `false` when the time is over first.
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

    /// Notes something and wakes whoever waited for it.
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
