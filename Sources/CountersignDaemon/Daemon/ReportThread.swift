// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization
internal import System

/// Thread that makes the reports of the admin listener, one after the other, so that no worker's callers wait for them.
///
/// It exists while there are jobs. There is at most one job for each connection of the admin listener.
final class ReportThread: Sendable {
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    private let start: ThreadStart

    /// Makes a queue whose thread is started by `start`.
    init(start: @escaping ThreadStart = startThread) {
        self.start = start
    }

    /// Runs `job` on the thread, after those before it. If no thread can be started, it runs at once.
    func execute(_ job: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.jobs.append(job)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard mustStart else { return }
        do throws(ThreadError) { try start { self.runAll() } } catch { runAll() }
    }

    private func runAll() {
        while let job = next() { job() }
    }

    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            if state.jobs.isEmpty { state.isRunning = false }
            return state.jobs.isEmpty ? nil : state.jobs.removeFirst()
        }
    }
}
