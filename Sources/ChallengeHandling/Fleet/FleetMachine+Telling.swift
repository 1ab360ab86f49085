// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Something of a login's end that the engine has not taken note of.
struct Untold: Sendable {
    enum What: Sendable {
        case fail([UInt8], pause: Duration, longest: Duration, latches: [SharedLatch])
        case offer(after: UInt64, [UInt8], endsAt: Int64)
        case publish([UInt8], endsAt: Int64)
        /// The lease is given back; nothing has failed.
        case release
    }

    let token: LeaseToken
    let generation: UInt64
    var what: What
    /// When it is told.
    var at: Int64
    var tries = 0

    var isOffer: Bool { if case .offer = what { true } else { false } }

    /// Whether there is nothing left to tell: the session has ended.
    func isOver(at now: Int64) -> Bool {
        switch what {
        case .offer(_, _, let endsAt), .publish(_, let endsAt): endsAt <= now
        case .fail, .release: false
        }
    }

    func request(at now: Int64) -> EngineRequest {
        switch what {
        case .fail(let bytes, let pause, let longest, let latches):
            .fail(
                token: token, generation: generation, failure: bytes, pause: pause, longest: longest, latches: latches)
        case .offer(let after, let session, let endsAt):
            .offer(after: after, session: session, life: .milliseconds(endsAt - now))
        case .publish(let session, let endsAt):
            .publish(token: token, generation: generation, session: session, life: .milliseconds(endsAt - now))
        case .release:
            .fail(token: token, generation: generation, failure: [], pause: .zero, longest: .zero, latches: [])
        }
    }

    /// Whether `request` is what it has to say.
    func says(_ request: EngineRequest) -> Bool {
        switch (what, request) {
        case (.publish, .publish): true
        case (.fail, .fail(_, _, _, let pause, _, let latches)): pause > .zero || !latches.isEmpty
        case (.release, .fail(_, _, _, let pause, _, let latches)): pause == .zero && latches.isEmpty
        default: false
        }
    }

    /// The engine is there again.
    mutating func hurry(_ moment: FleetMoment, _ times: FleetTimes) {
        tries = 0
        // What all have won for themselves meanwhile comes from all.
        at = isOffer ? moment.within(times.spread) : moment.now
    }
}

// What became of this host's logins, told until the engine has answered.
extension FleetMachine {
    /// So much is kept to be told. It is one login after the other, and each takes a while; what is given up tells itself: leases run out.
    static var mostUntold: Int { 4 }

    mutating func tell(_ one: Untold) {
        untold.append(one)
        if untold.count > Self.mostUntold { untold.removeFirst() }
    }

    /// The sessions that were to be told of have turned out to be of no use; the leases are given back all the same.
    mutating func withdraw(upTo generation: UInt64, _ moment: FleetMoment) {
        untold.removeAll(where: \.isOffer)
        for index in untold.indices where untold[index].generation <= generation {
            if case .publish = untold[index].what {
                untold[index].what = .release
                untold[index].at = moment.now
            }
        }
    }

    /// The answer to a publication, a failure, or a lease given back.
    mutating func told(_ reply: EngineReply?, _ token: LeaseToken, _ request: EngineRequest, _ moment: FleetMoment) {
        guard let index = untold.firstIndex(where: { $0.token == token && $0.says(request) }) else { return }
        switch reply {
        case nil: later(index, moment)
        case .stale:
            untold.remove(at: index)
            // A later login is or was made; its session will serve longer.
            if case .publish = request { look = Look(at: moment.within(times.spread), isDoubt: false) }
        case .done, .failed, .granted, .nothing, .session, .wait: untold.remove(at: index)
        }
    }

    /// The answer to an offer.
    mutating func offered(_ reply: EngineReply?, _ session: [UInt8], _ moment: FleetMoment) {
        guard let index = untold.firstIndex(where: \.isOffer) else { return }
        switch reply {
        case nil: return later(index, moment)
        case .done(let generation): take(max(present, generation), session, moment)
        case .session(let generation, let other):
            // An answer was lost, and this is our own.
            if other == session {
                take(max(present, generation), session, moment)
            } else if attempt == nil, generation > max(present, refused), other != refusedSession {
                look = nil
                return adopt(generation, other, moment)
            }
        case .failed, .granted, .nothing, .stale, .wait: break
        }
        untold.remove(at: index)
        look = nil
    }

    private mutating func later(_ index: Int, _ moment: FleetMoment) {
        let tries = min(untold[index].tries, 10)
        let pause = min(times.again.milliseconds << Int64(tries), max(times.alone.milliseconds, 1))
        untold[index].tries = tries + 1
        untold[index].at = moment.now &+ pause / 2 &+ Int64(moment.chance * Double(pause / 2)) &+ 1
    }
}
