// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import EventLoop
import Synchronization

/// The workers by number, so that one can tell the exchanges of another that their login is over.
package final class WorkerRoster: Sendable {
    private struct Worker: Sendable {
        let loop: EventLoop
        let runtime: LoopBound<ClientRuntime>
    }

    private let workers = Mutex<[Int: Worker]>([:])

    init() {}

    /// A worker is there from now on.
    func enlist(_ runtime: ClientRuntime) {
        let worker = Worker(loop: runtime.loop, runtime: LoopBound(runtime, to: runtime.loop))
        workers.withLock { $0[runtime.worker] = worker }
    }

    /// A worker is gone. Its waiters are told nothing any more.
    package func dismiss(worker: Int) {
        _ = workers.withLock { $0.removeValue(forKey: worker) }
    }

    /// The loop of some worker, for what has none of its own.
    package var loop: EventLoop? { workers.withLock { $0.values.first?.loop } }

    /// Has some worker try the failed logins of these upstreams again; see `LoginRunner.recover`.
    package func recover(_ plans: [UpstreamPlan]) {
        onSomeWorker { for plan in plans { $0.logins.recover(plan) } }
    }

    /// Has some worker see to the sessions that these upstreams keep; see `LoginRunner.keep`.
    package func keep(_ plans: [UpstreamPlan]) {
        guard plans.contains(where: { $0.logins.all.contains(where: \.isKept) }) else { return }
        onSomeWorker { for plan in plans { $0.logins.keep(plan) } }
    }

    /// Has some worker win the sessions of these keys anew, at those of `plans` that hold them; see
    /// `LoginRunner.replaceOutdated`.
    package func replaceOutdated(_ keys: Set<SessionKey>, at plans: [UpstreamPlan]) {
        onSomeWorker { $0.logins.replaceOutdated(keys, at: plans) }
    }

    /// Has every worker let go of sessions that are not held any more.
    package func refreshSnapshots() {
        for worker in workers.withLock({ Array($0.values) }) {
            worker.loop.execute { worker.runtime.value.refreshSnapshots() }
        }
    }

    /// Has some worker do `body`.
    func onSomeWorker(_ body: @escaping @Sendable (ClientRuntime) -> Void) {
        guard let worker = workers.withLock({ $0.values.first }) else { return }
        worker.loop.execute { body(worker.runtime.value) }
    }

    /// Has some worker end these sessions at their servers, all at once, and calls `done` for each that is over.
    package func logOut(_ sessions: [PendingLogout], _ done: @escaping @Sendable () -> Void = {}) {
        guard !sessions.isEmpty else { return }
        onSomeWorker { for session in sessions { $0.logins.end(session, done) } }
    }

    func tell(_ outcomes: SharedAttemptGate.Outcomes) {
        guard !outcomes.isEmpty else { return }
        let workers = workers.withLock { $0 }
        for (number, worker) in workers {
            let own = outcomes.filter { $0.waiter.worker == number }
            guard !own.isEmpty else { continue }
            worker.loop.execute { worker.runtime.value.waiters.tell(own) }
        }
    }
}
