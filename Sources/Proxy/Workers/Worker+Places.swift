// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Glibc

// Who gets a place, and whose connection is closed for that. All of it happens when a caller comes; requests know nothing of it.
extension Worker {
    /// Callers who may wait for a place until other workers have looked for one; one more is refused.
    private static let mostWaiting = 64

    /// Takes an accepted connection, or turns it away where its user is not let in or there is no place for it.
    func accept(_ descriptor: Int32, by acceptor: Acceptor) {
        let plan = acceptor.plan
        var holder = PlaceHolder.unasked
        var user: UInt32?
        // Over TCP the question takes microseconds: not where nobody could lack a place.
        if plan.admittedUsers != nil || acceptor.isUnix || acceptor.callers.isScarce
            || (!plan.isLocal && counts.callers.isScarce)
        {
            user = acceptor.user(of: descriptor)
            holder = user.map { .user($0) } ?? .unknown
        }
        if let users = plan.admittedUsers, !(user.map(users.contains) ?? false) {
            let refusal = LocalReply.notAdmitted(user: user, by: plan)
            refused.turnAway(descriptor, with: refusal.farewell(isAuthority: plan.isAuthority)) { [unowned self] in
                meter.replied(refusal, upstream: "")
                log.replied(refusal, listener: plan.name, isRefusal: true, id: runtime.nextID())
            }
            return
        }
        let place = CallerPlace(holder, at: plan, of: acceptor.callers, and: counts.callers)
        admit(AcceptedCaller(descriptor, acceptor, place, user: user))
    }

    private func admit(_ caller: AcceptedCaller) {
        // A place may be wanted at the listener, and then one among all callers.
        for _ in 0..<2 {
            guard let denial = caller.place.enter() else { return begin(caller) }
            guard evict(from: denial.places, for: caller.place) else { return askPeers(caller, denial, from: 0) }
        }
        if let denial = caller.place.enter() { refuse(caller, denial.reason) } else { begin(caller) }
    }

    private func begin(_ caller: AcceptedCaller) {
        figures.connectionOpened()
        connections[caller.descriptor] = DownstreamConnection(CallerStream(caller, worker: self))
    }

    private func refuse(_ caller: AcceptedCaller, _ reason: NoRoom) {
        meter.refused(reason)
        refused.refuse(caller.descriptor, reason)
    }

    // MARK: Eviction

    /// Closes a connection that holds one of `places` for nothing, so that `caller` gets a place: one that has been refused, one
    /// that has said nothing, then the one that has been idle longest (RFC 9112 §9.5 allows to close an idle connection at any
    /// time). Whether there was one.
    func evict(from places: CallerPlaces, for caller: CallerPlace) -> Bool {
        let now = loop.now
        if now >= vacancies.until {
            vacancies = Vacancies(of: connections.values, at: now, until: loop.now + limits.evictionAge / 10)
        }
        guard vacancies.maySearch(at: now) else { return false }
        let table = places.current
        for (index, descriptor) in vacancies.descriptors.enumerated() {
            guard let connection = connections[descriptor], connection.caller.place.isAmong(places),
                table.admits(
                    caller.holder, at: caller.listener, inPlaceOf: connection.caller.place.holder,
                    at: connection.caller.place.listener), connection.closeForAnother()
            else { continue }
            vacancies.descriptors.remove(at: index)
            return true
        }
        return false
    }

    // MARK: Other workers

    /// Has the others look for a connection to close, one after the other; the caller waits meanwhile.
    private func askPeers(_ caller: AcceptedCaller, _ denial: CallerPlace.Denial, from index: Int) {
        let others = peers.others(than: number)
        guard index < others.count, waiting.count < Self.mostWaiting, !isDraining else {
            return refuse(caller, denial.reason)
        }
        waiting[caller.descriptor] = caller
        let other = others[index]
        let home = LoopBound((worker: self, caller: caller), to: loop)
        let (places, place) = (denial.places, caller.place)
        other.loop.execute { [loop] in
            let found = other.worker.value.evict(from: places, for: place)
            loop.execute {
                let (worker, caller) = home.value
                worker.goOn(with: caller, denial, found, from: index + 1)
            }
        }
    }

    private func goOn(with caller: AcceptedCaller, _ denial: CallerPlace.Denial, _ found: Bool, from index: Int) {
        guard waiting[caller.descriptor] === caller else { return }
        waiting[caller.descriptor] = nil
        if found, let denial = caller.place.enter() {
            // Somebody else was faster.
            refuse(caller, denial.reason)
        } else if found {
            begin(caller)
        } else {
            askPeers(caller, denial, from: index)
        }
        tellIfDrained()
    }
}
