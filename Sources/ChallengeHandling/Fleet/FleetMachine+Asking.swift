// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// What is asked next, when, and whose answer it is.
extension FleetMachine {
    /// A request that was not answered yet, and when it was sent.
    struct UnderWay: Sendable {
        let request: EngineRequest
        let sentAt: Int64
        /// Whether news of this session came meanwhile. They come on a way of their own, so the answer may be the older of the two.
        var isOvertaken = false
    }

    /// A session that nobody waits for.
    struct Look: Sendable {
        var at: Int64
        /// Whether it is `present` itself that may be gone.
        var isDoubt: Bool
    }

    /// When the driver's timer is to fire, in milliseconds; `nil`: not at all.
    package var due: Int64? {
        guard underWay == nil else { return nil }
        var times: [Int64] = []
        switch attempt?.step {
        case .pausing(let until), .delaying(let until): times.append(until)
        case .winning(let lease?) where isEngineThere: times += lease.extendAt.map { [$0] } ?? []
        case .asking, .reading, .winning, nil: break
        }
        if isEngineThere {
            times += untold.map(\.at)
            if isLooking, let look { times.append(look.at) }
        }
        return times.min()
    }

    /// Whether the engine may be asked for what nobody waits for. An offer is answered with the same, and with what was lost of one it
    /// would be our own.
    private var isLooking: Bool { attempt == nil && !untold.contains(where: \.isOffer) }

    mutating func goOn(_ moment: FleetMoment) {
        switch attempt?.step {
        case .pausing(let until) where until <= moment.now: attempt?.step = .asking(isLast: false)
        case .delaying(let until) where until <= moment.now: attempt?.step = .asking(isLast: true)
        default: break
        }
        untold.removeAll { $0.isOver(at: moment.now) }
        guard underWay == nil else { return }
        if case .asking(isLast: false) = attempt?.step, !isEngineThere { delay(moment) }
        guard let request = next(moment) else { return }
        underWay = UnderWay(request: request, sentAt: moment.now)
        actions.append(.ask(request))
    }

    private func next(_ moment: FleetMoment) -> EngineRequest? {
        // What frees others from waiting comes first.
        if isEngineThere, let one = untold.first(where: { $0.at <= moment.now }) { return one.request(at: moment.now) }
        switch attempt?.step {
        case .asking:
            guard let attempt else { return nil }
            return .acquire(after: attempt.after, token: attempt.token, life: times.lease)
        case .winning(let lease?):
            guard isEngineThere, let attempt, let at = lease.extendAt, at <= moment.now else { return nil }
            return .extend(token: attempt.token, generation: lease.generation, life: times.lease)
        case .delaying, .pausing, .reading, .winning: return nil
        case nil:
            guard isEngineThere, isLooking, let look, look.at <= moment.now else { return nil }
            // Asked for itself, it is told of where it is still there.
            return .fetch(after: look.isDoubt ? max(present, 1) - 1 : max(present, refused))
        }
    }

    mutating func answered(_ reply: EngineReply?, _ latches: UInt64, _ moment: FleetMoment) {
        guard let asked = underWay else { return }
        underWay = nil
        if reply != nil { isEngineThere = true }
        switch asked.request {
        case .acquire(_, let token, _):
            if let attempt, attempt.token == token, case .asking = attempt.step {
                acquired(reply, latches, asked, moment)
            } else {
                unwanted(reply, token, moment)
            }
        case .extend(let token, _, _): extended(reply, token, sentAt: asked.sentAt, moment)
        case .publish(let token, _, _, _), .fail(let token, _, _, _, _, _): told(reply, token, asked.request, moment)
        case .offer(_, let session, _): offered(reply, session, moment)
        case .fetch(let after): fetched(reply, after: after, moment)
        case .drop: break
        }
    }

    /// The answer to a request for the lease that was given up meanwhile.
    private mutating func unwanted(_ reply: EngineReply?, _ token: LeaseToken, _ moment: FleetMoment) {
        switch reply {
        case .granted(let generation, _):
            // Others wait for it.
            tell(Untold(token: token, generation: generation, what: .release, at: moment.now))
        case .session(let generation, let session)
        where attempt == nil && generation > max(present, refused) && session != refusedSession:
            adopt(generation, session, moment)
        case .done, .failed, .nothing, .session, .stale, .wait, nil: break
        }
    }

    /// What the look has found.
    private mutating func fetched(_ reply: EngineReply?, after: UInt64, _ moment: FleetMoment) {
        let isDoubt = look?.isDoubt ?? false
        look = nil
        switch reply {
        case .session(let generation, let session) where session != refusedSession:
            if case .asking = attempt?.step, let attempt, generation > attempt.after {
                take(generation, session, moment)
                finish(.session(generation: generation, session))
            } else if attempt == nil, generation > max(present, refused) {
                adopt(generation, session, moment)
            }
        case .nothing:
            guard isDoubt, attempt == nil, after < present else { return }
            refused = max(refused, present)
            held = nil
            actions.append(.drop(generation: present))
        case nil:
            look = Look(at: moment.after(times.spread) + moment.within(times.spread) - moment.now, isDoubt: isDoubt)
        case .done, .failed, .granted, .session, .stale, .wait: break
        }
    }

    /// News of this session.
    mutating func told(_ generation: UInt64, _ moment: FleetMoment) {
        failure = nil
        othersUntil = 0
        let isFirst = generation > toldOf
        toldOf = max(toldOf, generation)
        underWay?.isOvertaken = true
        if case .pausing = attempt?.step {
            attempt?.tries = 0
            attempt?.step = .asking(isLast: false)
        }
        if generation > present {
            look = Look(at: moment.within(times.spread), isDoubt: false)
        } else if generation == present, !isFirst || takenAt < moment.now - 1_000 {
            // Its publication was told of before, or long ago: so it was ended.
            look = Look(at: moment.within(times.spread), isDoubt: true)
        }
    }

    mutating func away(_ moment: FleetMoment) {
        isEngineThere = false
        if case .pausing = attempt?.step { delay(moment) }
    }

    mutating func connected(_ moment: FleetMoment) {
        isEngineThere = true
        for index in untold.indices { untold[index].hurry(moment, times) }
        switch attempt?.step {
        case .delaying, .pausing:
            attempt?.tries = 0
            attempt?.step = .asking(isLast: false)
        case .winning(var lease?):
            lease.extendAt = lease.extendAt.map { _ in moment.now }
            attempt?.step = .winning(lease)
        case .asking, .reading, .winning, nil: break
        }
        // What was told meanwhile is lost.
        look = Look(at: moment.within(times.spread), isDoubt: false)
    }

    mutating func adopt(_ generation: UInt64, _ session: [UInt8], _ moment: FleetMoment) {
        take(generation, session, moment)
        untold.removeAll(where: \.isOffer)
        actions.append(.adopt(generation: generation, session))
    }

    mutating func take(_ generation: UInt64, _ session: [UInt8], _ moment: FleetMoment) {
        present = generation
        held = session
        takenAt = moment.now
        failure = nil
        // What news told of is here.
        if generation >= toldOf { look = nil }
    }
}
