// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Glibc
internal import Synchronization

// Admission of connections, and eviction of connections for new callers. All of this happens when a caller connects, never for a
// request.
extension Worker {
    /// The number of callers who may wait while other workers look for a connection to close.
    private static let mostWaiting = 64

    /// Admits an accepted connection, or refuses it if its user is not allowed or a limit is reached.
    func accept(_ descriptor: Int32, by acceptor: Acceptor) {
        let plan = acceptor.plan
        var holder = QuotaHolder.unasked
        var user: UInt32?
        // Over TCP the lookup takes microseconds, so it is left out if no limit is near.
        if plan.admittedUsers != nil || acceptor.isUnix || acceptor.callers.isScarce
            || (!plan.isLocal && counts.callers.isScarce)
        {
            user = acceptor.user(of: descriptor)
            holder = user.map { .user($0) } ?? .unknown
        }
        if plan.health == nil, let users = plan.admittedUsers, !(user.map(users.contains) ?? false) {
            let refusal = LocalReply.notAdmitted(user: user, by: plan)
            refused.turnAway(descriptor, with: refusal.closingReply(answersAuthRequests: plan.answersAuthRequests)) {
                [unowned self] in
                meter.replied(refusal, upstream: "")
                log.replied(refusal, listener: plan.name, isRefusal: true, id: runtime.nextID())
            }
            return
        }
        let permit = ConnectionPermit(holder, at: plan, of: acceptor.callers, and: counts.callers)
        admit(AcceptedCaller(descriptor, acceptor, permit, user: user))
    }

    private func admit(_ caller: AcceptedCaller) {
        // Both limits may be reached: that of the listener, then that of all callers.
        for _ in 0..<2 {
            guard let denial = caller.permit.enter() else { return begin(caller) }
            guard evict(from: denial.quotas, for: caller.permit) else { return askPeers(caller, denial, from: 0) }
        }
        if let denial = caller.permit.enter() { refuse(caller, denial.reason) } else { begin(caller) }
    }

    private func begin(_ caller: AcceptedCaller) {
        figures.connectionOpened()
        connections[caller.descriptor] = DownstreamConnection(CallerStream(caller, worker: self))
    }

    private func refuse(_ caller: AcceptedCaller, _ reason: ConnectionRefusal) {
        meter.refused(reason)
        refused.refuse(caller.descriptor, reason)
    }

    // MARK: Eviction

    /// Closes a connection that blocks one of `quotas`, so that `caller` is admitted: one that was refused, one that sent
    /// nothing, then the one that was idle longest (RFC 9112 §9.5 allows closing an idle connection at any time). Returns true if
    /// there was one.
    func evict(from quotas: ConnectionQuotas, for caller: ConnectionPermit) -> Bool {
        let now = loop.now
        if now >= vacancies.until {
            vacancies = Vacancies(of: connections.values, at: now, until: loop.now + limits.evictionAge / 10)
        }
        guard vacancies.maySearch(at: now) else { return false }
        let table = quotas.current
        for (index, descriptor) in vacancies.descriptors.enumerated() {
            guard let connection = connections[descriptor], connection.caller.permit.counts(in: quotas),
                table.admits(
                    caller.holder, at: caller.listener, inPlaceOf: connection.caller.permit.holder,
                    at: connection.caller.permit.listener), connection.closeForAnother()
            else { continue }
            vacancies.descriptors.remove(at: index)
            return true
        }
        return false
    }

    // MARK: Other workers

    /// Asks the other workers one after the other for a connection to close. The caller waits meanwhile.
    private func askPeers(_ caller: AcceptedCaller, _ denial: ConnectionPermit.Denial, from index: Int) {
        let others = peers.others(than: number)
        guard index < others.count, waiting.count < Self.mostWaiting, !isDraining else {
            return refuse(caller, denial.reason)
        }
        waiting[caller.descriptor] = caller
        let other = others[index]
        let home = LoopBound((worker: self, caller: caller), to: loop)
        let (quotas, permit) = (denial.quotas, caller.permit)
        other.loop.execute { [loop] in
            let found = other.worker.value.evict(from: quotas, for: permit)
            loop.execute {
                let (worker, caller) = home.value
                worker.resume(with: caller, denial, found, from: index + 1)
            }
        }
    }

    private func resume(
        with caller: AcceptedCaller, _ denial: ConnectionPermit.Denial, _ found: Bool, from index: Int
    ) {
        guard waiting[caller.descriptor] === caller else { return }
        waiting[caller.descriptor] = nil
        if found, let denial = caller.permit.enter() {
            // Another caller was faster.
            refuse(caller, denial.reason)
        } else if found {
            begin(caller)
        } else {
            askPeers(caller, denial, from: index)
        }
        notifyIfDrained()
    }
}

/// A worker and its loop, for the other workers.
struct WorkerMember: Sendable {
    let number: Int
    let loop: EventLoop
    let worker: LoopBound<Worker>
}

/// All workers of a proxy. A caller may come to one worker while another one has the connection to close.
final class WorkerPeers: Sendable {
    private let members = Mutex<[WorkerMember]>([])

    /// Sets the workers; an empty list at the end.
    func introduce(_ all: [WorkerMember]) { members.withLock { $0 = all } }

    /// Returns all workers except the one with that number.
    func others(than number: Int) -> [WorkerMember] { members.withLock { $0.filter { $0.number != number } } }
}
