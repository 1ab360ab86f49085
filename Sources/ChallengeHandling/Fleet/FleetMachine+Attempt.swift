// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// From a session that is wanted to one that is there: asking for the lease, waiting for another host, the login.
extension FleetMachine {
    /// What is wanted, and how far it is.
    struct Attempt: Sendable {
        var after: UInt64
        let token: LeaseToken
        var isRenewal: Bool
        var step = Step.asking(isLast: false)
        /// How many answers did not come, one after the other.
        var tries = 0
    }

    /// How far an attempt is.
    enum Step: Sendable {
        /// The lease is asked for; `isLast`: once more, before this host logs in alone. Legal next: all.
        case asking(isLast: Bool)
        /// Another host has the lease, or an answer did not come. Legal next: asking, delaying.
        case pausing(until: Int64)
        /// The engine is away. Legal next: asking.
        case delaying(until: Int64)
        /// The lease is there, the latches are read. Legal next: asking, pausing, delaying, winning.
        case reading(Lease)
        /// The login runs; without a lease: alone. Only its own end ends it.
        case winning(Lease?)
    }

    /// The right to log in.
    struct Lease: Sendable {
        let generation: UInt64
        /// Until when nobody else has it, reckoned from the moment at which it was asked for.
        var endsAt: Int64
        /// When it is extended; `nil`: no more.
        var extendAt: Int64?
        /// When the login began.
        var since: Int64

        init(_ generation: UInt64, from sentAt: Int64, life: Duration, since: Int64) {
            self.generation = generation
            endsAt = sentAt &+ life.milliseconds
            extendAt = sentAt &+ life.milliseconds / 3
            self.since = since
        }
    }

    mutating func want(_ after: UInt64, _ isRenewal: Bool, _ token: LeaseToken, _ moment: FleetMoment) {
        if !isRenewal {
            refused = max(refused, after)
            refusedSession = held ?? refusedSession
            held = nil
            withdraw(upTo: after, moment)
        }
        if var attempt {
            attempt.after = max(attempt.after, after, refused)
            if !isRenewal { attempt.isRenewal = false }
            self.attempt = attempt
            return
        }
        if let failure, failure.until > moment.now {
            return finish(.failure(failure.bytes, for: .milliseconds(failure.until - moment.now)))
        }
        if isRenewal, othersUntil > moment.now { return finish(.left) }
        look = nil
        attempt = Attempt(after: max(after, refused), token: token, isRenewal: isRenewal)
    }

    mutating func giveUp(_ moment: FleetMoment) {
        switch attempt?.step {
        case .winning, nil: return
        case .reading(let lease):
            guard let token = attempt?.token else { return }
            tell(Untold(token: token, generation: lease.generation, what: .release, at: moment.now))
            finish(.left)
        case .asking, .delaying, .pausing: finish(.left)
        }
    }

    /// The answer to a request for the lease.
    mutating func acquired(_ reply: EngineReply?, _ latches: UInt64, _ asked: UnderWay, _ moment: FleetMoment) {
        guard let attempt else { return }
        switch reply {
        case .wait where asked.isOvertaken, .failed where asked.isOvertaken:
            // What it says to wait for may be what the news told the end of, and nobody tells it twice: it is asked for once more.
            self.attempt?.tries = 0
        case .granted(let generation, let count) where generation > attempt.after:
            let lease = Lease(generation, from: asked.sentAt, life: times.lease, since: moment.now)
            guard count > latches else { return begin(lease, moment) }
            self.attempt?.step = .reading(lease)
            actions.append(.readLatches)
        case .wait(let rest):
            othersUntil = moment.after(rest)
            if attempt.isRenewal { return finish(.left) }
            self.attempt?.tries = 0
            self.attempt?.step = .pausing(until: othersUntil + moment.within(times.spread) - moment.now + 1)
        case .session(let generation, let session) where generation > attempt.after && session == refusedSession:
            refused = generation
            self.attempt?.after = generation
        case .session(let generation, let session) where generation > attempt.after:
            take(generation, session, moment)
            finish(.session(generation: generation, session))
        case .failed(let bytes, let rest):
            failure = (bytes, moment.after(rest))
            finish(.failure(bytes, for: rest))
        case .done, .granted, .nothing, .session, .stale, nil: miss(moment)
        }
    }

    mutating func latchesRead(_ isRead: Bool, _ moment: FleetMoment) {
        guard case .reading(let lease) = attempt?.step else { return }
        if isRead { begin(lease, moment) } else { miss(moment) }
    }

    private mutating func begin(_ lease: Lease, _ moment: FleetMoment) {
        // The answer took longer than the lease: by now it may be another's.
        guard moment.now < lease.endsAt else { return miss(moment) }
        var lease = lease
        lease.since = moment.now
        attempt?.step = .winning(lease)
        actions.append(.begin(generation: lease.generation))
    }

    /// An answer did not come, or made no sense.
    private mutating func miss(_ moment: FleetMoment) {
        if case .asking(isLast: true) = attempt?.step {
            attempt?.step = .winning(nil)
            actions.append(.begin(generation: nil))
            return
        }
        let tries = (attempt?.tries ?? 0) + 1
        attempt?.tries = tries
        guard isEngineThere, tries < times.tries else { return delay(moment) }
        attempt?.step = .pausing(until: moment.within(times.again) + times.again.milliseconds / 2 + 1)
    }

    /// The engine is away: chance decides who is first to log in alone.
    mutating func delay(_ moment: FleetMoment) {
        attempt?.step = .delaying(until: moment.within(times.alone))
    }

    /// The answer to a request for more time.
    mutating func extended(_ reply: EngineReply?, _ token: LeaseToken, sentAt: Int64, _ moment: FleetMoment) {
        guard attempt?.token == token, case .winning(var lease?) = attempt?.step else { return }
        switch reply {
        case .done:
            lease.endsAt = sentAt &+ times.lease.milliseconds
            lease.extendAt = sentAt &+ times.lease.milliseconds / 3
        case nil: lease.extendAt = moment.now &+ max(times.lease.milliseconds / 12, 1)
        // Lost: the login cannot be unsent, and its fence says what becomes of it.
        case .failed, .granted, .nothing, .session, .stale, .wait: lease.extendAt = nil
        }
        if moment.now &- lease.since >= times.longestLogin.milliseconds { lease.extendAt = nil }
        attempt?.step = .winning(lease)
    }

    /// The login has won a session.
    mutating func won(_ session: [UInt8]?, _ life: Duration, _ moment: FleetMoment) {
        guard let session else { return end(.release, moment, as: .won(generation: nil)) }
        guard let attempt, case .winning(let lease) = attempt.step else { return }
        failure = nil
        untold.removeAll(where: \.isOffer)
        let endsAt = moment.after(life)
        if let lease {
            take(max(present, lease.generation), session, moment)
            tell(
                Untold(
                    token: attempt.token, generation: lease.generation, what: .publish(session, endsAt: endsAt),
                    at: moment.now))
        } else {
            held = session
            tell(
                Untold(
                    token: attempt.token, generation: 0, what: .offer(after: attempt.after, session, endsAt: endsAt),
                    at: moment.within(times.spread)))
        }
        finish(.won(generation: lease?.generation))
    }

    /// The login is over without a session that others could use; under a lease the engine is told `what`.
    mutating func end(_ what: Untold.What, _ moment: FleetMoment, as outcome: Outcome = .failed) {
        guard let attempt, case .winning(let lease) = attempt.step else { return }
        if let lease {
            tell(Untold(token: attempt.token, generation: lease.generation, what: what, at: moment.now))
        }
        finish(outcome)
    }

    mutating func finish(_ outcome: Outcome) {
        attempt = nil
        actions.append(.finish(outcome))
    }
}
