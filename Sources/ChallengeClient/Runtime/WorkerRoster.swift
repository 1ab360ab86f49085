// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import EventLoop
import Synchronization

/// The workers by number, for notifications of other workers' exchanges.
package final class WorkerRoster: Sendable {
    private struct Worker: Sendable {
        let loop: EventLoop
        let runtime: LoopBound<ClientRuntime>
    }

    private let workers = Mutex<[Int: Worker]>([:])

    init() {}

    /// Adds a worker.
    func enlist(_ runtime: ClientRuntime) {
        let worker = Worker(loop: runtime.loop, runtime: LoopBound(runtime, to: runtime.loop))
        workers.withLock { $0[runtime.worker] = worker }
    }

    /// Removes a worker. Its waiters are no longer notified.
    package func dismiss(worker: Int) {
        _ = workers.withLock { $0.removeValue(forKey: worker) }
    }

    /// The loop of any worker.
    package var loop: EventLoop? { workers.withLock { $0.values.first?.loop } }

    /// Makes one worker retry those of these logins that have failed; see `LoginRunner.recover`.
    package func recover(_ logins: LoginIndex) {
        onSomeWorker { $0.logins.recover(logins) }
    }

    /// Makes one worker maintain the kept sessions of these logins; see `LoginRunner.maintainSessions`.
    package func maintainSessions(of logins: LoginIndex) {
        guard !logins.keepsNone else { return }
        onSomeWorker { $0.logins.maintainSessions(of: logins) }
    }

    /// Makes one worker log in again for these session keys, by `logins` that hold them; see
    /// `LoginRunner.replaceOutdated`.
    package func replaceOutdated(_ keys: Set<SessionKey>, of logins: LoginIndex) {
        onSomeWorker { $0.logins.replaceOutdated(keys, of: logins) }
    }

    /// Makes every worker release sessions that are no longer held.
    package func refreshSnapshots() {
        for worker in workers.withLock({ Array($0.values) }) {
            worker.loop.execute { worker.runtime.value.refreshSnapshots() }
        }
    }

    /// Runs `body` on one worker.
    package func onSomeWorker(_ body: @escaping @Sendable (ClientRuntime) -> Void) {
        guard let worker = workers.withLock({ $0.values.first }) else { return }
        worker.loop.execute { body(worker.runtime.value) }
    }

    /// Makes one worker end these sessions at their servers. Calls `done` for each.
    package func logOut(_ sessions: [PendingLogout], _ done: @escaping @Sendable () -> Void = {}) {
        guard !sessions.isEmpty else { return }
        onSomeWorker { for session in sessions { $0.logins.end(session, done) } }
    }

    func notify(_ outcomes: SharedAttemptGate.Outcomes) {
        guard !outcomes.isEmpty else { return }
        let workers = workers.withLock { $0 }
        for (number, worker) in workers {
            let own = outcomes.filter { $0.waiter.worker == number }
            guard !own.isEmpty else { continue }
            worker.loop.execute { worker.runtime.value.waiters.notify(own) }
        }
    }
}
