// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Decides for one node and one session who logs in, and who waits.
///
/// A value without I/O, clock or randomness: each event brings `now` (milliseconds of a monotonic clock) and a random number in 0..<1.
/// After each event the driver carries out the actions in order and sets its timer to `nextDeadline`.
///
/// - At most one request is pending; the driver reports its reply, or `nil`, as `replyReceived`. Nothing is sent meanwhile.
/// - A lease is requested with the token of `sessionRequested` until a login begins, and never after: no two logins for one grant.
///   A lease that is granted after the request was cancelled is released.
/// - This node's own session or failure takes effect at once; the report to the store is resent until it is answered.
package struct LeaseMachine: Sendable {
    /// A store request without a reply so far.
    private struct PendingRequest: Sendable {
        let request: StoreRequest
        let sentAt: Int64
        /// An event about this session came meanwhile. Events take another connection, so the reply may be older.
        var isOvertaken = false
    }

    /// Reachability of the session store, as far as is known.
    package private(set) var isStoreReachable: Bool
    private let times: LeaseTimes
    private var state = State.idle
    private var pendingRequest: PendingRequest?
    /// Reports that the session store has not confirmed.
    private var reports = PendingReports()
    private var known: KnownSessions
    /// Next query for a session that no login waits for; `isOwn`: for this node's own.
    private var poll: (at: Int64, isOwn: Bool)?
    /// Failure of another node's login, during its pause.
    private var sharedFailure: (bytes: [UInt8], until: Int64)?
    /// Latest possible end of another node's lease.
    private var othersLeaseUntil: Int64 = 0
    private var inputs = LeaseInputs(now: 0, random: 0)
    private var actions: [Action] = []

    /// An idle machine. `generation` is that of a session taken over from an earlier process, or 0.
    package init(times: LeaseTimes = LeaseTimes(), isStoreReachable: Bool, generation: UInt64 = 0) {
        self.times = times
        self.isStoreReachable = isStoreReachable
        known = KnownSessions(generation: generation)
    }

    /// Latest generation that this node has taken from the other nodes or given to them.
    package var generation: UInt64 { known.generation }
    /// True while a requested session is missing.
    package var hasRequest: Bool { state.request != nil }
    /// True while this node logs in.
    package var isLoggingIn: Bool { if case .loggingIn = state { true } else { false } }
    /// True until the session store has confirmed all reports of this node.
    package var hasPendingReports: Bool { !reports.isEmpty }

    private var now: Int64 { inputs.now }

    /// Time of the driver's timer, in milliseconds; `nil`: no timer.
    package var nextDeadline: Int64? {
        guard pendingRequest == nil else { return nil }
        let storeDeadlines = isStoreReachable ? [state.extendAt, reports.nextDueAt, isPolling ? poll?.at : nil] : []
        return (storeDeadlines + [state.retryAt]).compactMap(\.self).min()
    }

    /// Handles `event` and returns the actions for the driver.
    package mutating func handle(_ event: Event, now: Int64, random: Double) -> [Action] {
        inputs = LeaseInputs(now: now, random: min(max(random, 0), 1))
        switch event {
        case .sessionRequested(let after, let isRenewal, let token):
            requestSession(after: after, isRenewal: isRenewal, token: token)
        case .requestCancelled: cancelRequest()
        case .replyReceived(let reply, let latches): receiveReply(reply, knownLatches: latches)
        case .latchesRead(let isRead): latchesRead(isRead)
        case .sessionChanged(let generation): sessionChanged(generation)
        case .storeDisconnected: storeDisconnected()
        case .storeConnected: storeConnected()
        case .timerFired: break
        case .loginSucceeded(let session, let lifetime): loginSucceeded(session, lifetime: lifetime)
        case .loginFailed(let bytes, let pause, let longestPause, let latches):
            endLogin(.failure(bytes, pause: pause, longestPause: longestPause, latches: latches), outcome: .failed)
        case .loginCancelled: endLogin(.release, outcome: .failed)
        case .failuresForgotten: (sharedFailure, othersLeaseUntil) = (nil, 0)
        }
        advance()
        defer { actions = [] }
        return actions
    }
}

// The request for a session.
extension LeaseMachine {
    private mutating func requestSession(after: UInt64, isRenewal: Bool, token: LeaseToken) {
        if !isRenewal {
            known.refuseSession(upTo: after)
            reports.withdrawSessions(upTo: after, now: now)
        }
        if var request = state.request {
            request.after = max(request.after, after, known.refusedGeneration)
            if !isRenewal { request.isRenewal = false }
            state.replaceRequest(request)
            return
        }
        if let sharedFailure, sharedFailure.until > now {
            return finish(.failure(sharedFailure.bytes, for: .milliseconds(sharedFailure.until &- now)))
        }
        if isRenewal, othersLeaseUntil > now { return finish(.leftToOther) }
        poll = nil
        let request = SessionRequest(after: max(after, known.refusedGeneration), token: token, isRenewal: isRenewal)
        state = .acquiring(request, isFinal: false)
    }

    private mutating func cancelRequest() {
        switch state {
        case .idle, .loggingIn: return
        case .readingLatches(let request, let lease):
            enqueueReport(.release, token: request.token, generation: lease.generation)
            finish(.leftToOther)
        case .acquiring, .delaying, .waiting: finish(.leftToOther)
        }
    }

    private mutating func finish(_ outcome: Outcome) {
        state = .idle
        actions.append(.finish(outcome))
    }

    private mutating func acquireLease(_ request: SessionRequest, isFinal: Bool) {
        var request = request
        request.unanswered = 0
        state = .acquiring(request, isFinal: isFinal)
    }

    /// Starts what is due: a try for the lease, or the next store request.
    private mutating func advance() {
        switch state {
        case .waiting(let request, let until) where until <= now: state = .acquiring(request, isFinal: false)
        case .delaying(let request, let until) where until <= now: state = .acquiring(request, isFinal: true)
        default: break
        }
        reports.removeExpired(at: now)
        guard pendingRequest == nil else { return }
        if case .acquiring(let request, isFinal: false) = state, !isStoreReachable { delayLogin(request) }
        guard let next = nextStoreRequest() else { return }
        pendingRequest = PendingRequest(request: next, sentAt: now)
        actions.append(.send(next))
    }

    private func nextStoreRequest() -> StoreRequest? {
        // Reports first: other nodes wait for them.
        if isStoreReachable, let report = reports.nextRequest(at: now) { return report }
        switch state {
        case .acquiring(let request, _):
            return .acquire(after: request.after, token: request.token, lifetime: times.lease)
        case .loggingIn(let request, let lease?, _):
            guard isStoreReachable, let at = lease.extendAt, at <= now else { return nil }
            return .extend(token: request.token, generation: lease.generation, lifetime: times.lease)
        case .delaying, .loggingIn, .readingLatches, .waiting: return nil
        case .idle:
            guard isStoreReachable, isPolling, let poll, poll.at <= now else { return nil }
            return .fetch(after: poll.isOwn ? max(known.generation, 1) - 1 : known.latestGeneration)
        }
    }

    private mutating func receiveReply(_ reply: StoreReply?, knownLatches: UInt64) {
        guard let pending = pendingRequest else { return }
        pendingRequest = nil
        if reply != nil { isStoreReachable = true }
        switch pending.request {
        case .acquire(_, let token, _):
            if case .acquiring(let request, let isFinal) = state, request.token == token {
                acquireReplied(reply, knownLatches: knownLatches, pending, request, isFinal: isFinal)
            } else {
                cancelledAcquireReplied(reply, token)
            }
        case .extend(let token, _, _): extendReplied(reply, token, sentAt: pending.sentAt)
        case .publish(let token, _, _, _), .fail(let token, _, _, _, _, _): reportReplied(reply, token, pending.request)
        case .offer(_, let session, _): offerReplied(reply, session)
        case .fetch(let after): pollReplied(reply, after: after, isOvertaken: pending.isOvertaken)
        case .drop: break
        }
    }
}

// The lease.
extension LeaseMachine {
    private mutating func acquireReplied(
        _ reply: StoreReply?, knownLatches: UInt64, _ pending: PendingRequest, _ request: SessionRequest, isFinal: Bool
    ) {
        var request = request
        switch reply {
        case .wait where pending.isOvertaken, .failed where pending.isOvertaken:
            // The lease or failure may be over, and no other event will announce this.
            acquireLease(request, isFinal: isFinal)
        case .granted(let generation, let latches) where generation > request.after:
            let lease = Lease(generation: generation, requestedAt: pending.sentAt, lifetime: times.lease)
            guard latches > knownLatches else { return beginLogin(request, lease) }
            state = .readingLatches(request, lease)
            actions.append(.readLatches)
        case .wait(let rest):
            othersLeaseUntil = inputs.after(rest)
            if request.isRenewal { return finish(.leftToOther) }
            request.unanswered = 0
            state = .waiting(request, until: othersLeaseUntil &+ inputs.randomDelay(within: times.spread) &+ 1)
        case .session(let generation, let session) where generation > request.after && session == known.refusedSession:
            known.refuseGenerations(upTo: generation)
            request.after = generation
            state = .acquiring(request, isFinal: isFinal)
        case .session(let generation, let session) where generation > request.after:
            takeSession(session, generation)
            finish(.session(generation: generation, session))
        case .failed(let bytes, let rest):
            sharedFailure = (bytes, inputs.after(rest))
            finish(.failure(bytes, for: rest))
        case .done, .granted, .nothing, .session, .stale, nil: replyMissed(request)
        }
    }

    /// Handles the reply to a lease request that was cancelled meanwhile.
    private mutating func cancelledAcquireReplied(_ reply: StoreReply?, _ token: LeaseToken) {
        switch reply {
        case .granted(let generation, _):
            // Other nodes wait for its end.
            enqueueReport(.release, token: token, generation: generation)
        case .session(let generation, let session): adoptIfNews(session, generation)
        case .done, .failed, .nothing, .stale, .wait, nil: break
        }
    }

    private mutating func latchesRead(_ isRead: Bool) {
        guard case .readingLatches(let request, let lease) = state else { return }
        if isRead { beginLogin(request, lease) } else { replyMissed(request) }
    }

    /// Begins the login, alone if `lease` is `nil`.
    private mutating func beginLogin(_ request: SessionRequest, _ lease: Lease?) {
        // An expired lease may be another node's by now.
        if let lease, lease.endsAt <= now { return replyMissed(request) }
        state = .loggingIn(request, lease, since: now)
        actions.append(.beginLogin(generation: lease?.generation))
    }

    /// Handles a missing or senseless reply.
    private mutating func replyMissed(_ request: SessionRequest) {
        if case .acquiring(_, isFinal: true) = state { return beginLogin(request, nil) }
        var request = request
        request.unanswered += 1
        guard isStoreReachable, request.unanswered < times.tries else { return delayLogin(request) }
        state = .waiting(
            request, until: now &+ inputs.randomDelay(within: times.retry) &+ times.retry.milliseconds / 2 &+ 1)
    }

    /// Delays the login randomly, so that not all nodes log in at once.
    private mutating func delayLogin(_ request: SessionRequest) {
        state = .delaying(request, until: now &+ inputs.randomDelay(within: times.alone))
    }

    private mutating func extendReplied(_ reply: StoreReply?, _ token: LeaseToken, sentAt: Int64) {
        guard case .loggingIn(let request, var lease?, let since) = state, request.token == token else { return }
        switch reply {
        case .done: lease.extend(requestedAt: sentAt, lifetime: times.lease)
        case nil: lease.extendAt = now &+ max(times.lease.milliseconds / 12, 1)
        // Lost. The login continues; its fence decides if the session is taken.
        case .failed, .granted, .nothing, .session, .stale, .wait: lease.extendAt = nil
        }
        if now &- since >= times.longestLogin.milliseconds { lease.extendAt = nil }
        state = .loggingIn(request, lease, since: since)
    }
}

// The end of this node's login, and its reports.
extension LeaseMachine {
    private mutating func loginSucceeded(_ established: [UInt8]?, lifetime: Duration) {
        guard let established else { return endLogin(.release, outcome: .established(generation: nil)) }
        guard case .loggingIn(let request, let lease, _) = state else { return }
        sharedFailure = nil
        reports.removeOffers()
        let endsAt = inputs.after(lifetime)
        if let lease {
            takeSession(established, max(known.generation, lease.generation))
            enqueueReport(.session(established, endsAt: endsAt), token: request.token, generation: lease.generation)
        } else {
            known.session = established
            enqueueReport(
                .offer(after: request.after, established, endsAt: endsAt), token: request.token, generation: 0,
                delay: inputs.randomDelay(within: times.spread))
        }
        finish(.established(generation: lease?.generation))
    }

    /// Ends the login without a session to share. `content` is reported if there is a lease.
    private mutating func endLogin(_ content: PendingReport.Content, outcome: Outcome) {
        guard case .loggingIn(let request, let lease, _) = state else { return }
        if let lease { enqueueReport(content, token: request.token, generation: lease.generation) }
        finish(outcome)
    }

    private mutating func enqueueReport(
        _ content: PendingReport.Content, token: LeaseToken, generation: UInt64, delay: Int64 = 0
    ) {
        reports.enqueue(PendingReport(token: token, generation: generation, content: content, dueAt: now &+ delay))
    }

    /// Handles the reply to a published session, a failure or a release.
    private mutating func reportReplied(_ reply: StoreReply?, _ token: LeaseToken, _ request: StoreRequest) {
        guard let index = reports.index(of: request, token) else { return }
        guard let reply else { return reports.postpone(at: index, inputs, times) }
        reports.remove(at: index)
        // After a later lease, that login's session will last longer.
        if reply == .stale, case .publish = request { schedulePoll(isOwn: false) }
    }

    private mutating func offerReplied(_ reply: StoreReply?, _ offered: [UInt8]) {
        guard let index = reports.offerIndex else { return }
        switch reply {
        case nil: return reports.postpone(at: index, inputs, times)
        // After a lost reply the store has this node's session.
        case .done(let generation), .session(let generation, offered):
            takeSession(offered, max(known.generation, generation))
        case .session(let generation, let other): adoptIfNews(other, generation)
        case .failed, .granted, .nothing, .stale, .wait: break
        }
        reports.removeOffers()
        poll = nil
    }
}

// Sessions of other nodes.
extension LeaseMachine {
    /// True if a poll is allowed. The reply to an offer brings the session as well.
    private var isPolling: Bool { state.request == nil && !reports.hasOffer }

    private mutating func pollReplied(_ reply: StoreReply?, after: UInt64, isOvertaken: Bool) {
        let isOwn = poll?.isOwn ?? false
        if !isOvertaken { poll = nil }
        switch reply {
        case .session(let generation, let session):
            if case .acquiring(let request, _) = state, generation > request.after, session != known.refusedSession {
                takeSession(session, generation)
                finish(.session(generation: generation, session))
            } else {
                adoptIfNews(session, generation)
            }
        case .nothing:
            guard isOwn, !isOvertaken, state.request == nil, after < known.generation else { return }
            known.dropSession()
            actions.append(.dropSession(generation: known.generation))
        case nil:
            poll = (at: inputs.after(times.spread) &+ inputs.randomDelay(within: times.spread), isOwn: isOwn)
        case .done, .failed, .granted, .stale, .wait: break
        }
    }

    private mutating func sessionChanged(_ changed: UInt64) {
        (sharedFailure, othersLeaseUntil) = (nil, 0)
        pendingRequest?.isOvertaken = true
        if case .waiting(let request, _) = state { acquireLease(request, isFinal: false) }
        switch known.announce(changed, now: now) {
        case .later: schedulePoll(isOwn: false)
        case .ended: schedulePoll(isOwn: true)
        case .known: break
        }
    }

    private mutating func storeDisconnected() {
        isStoreReachable = false
        if case .waiting(let request, _) = state { delayLogin(request) }
    }

    private mutating func storeConnected() {
        isStoreReachable = true
        reports.resetBackoff(inputs, times)
        switch state {
        case .delaying(let request, _), .waiting(let request, _): acquireLease(request, isFinal: false)
        case .loggingIn(let request, var lease?, let since):
            lease.extendAt = lease.extendAt.map { _ in now }
            state = .loggingIn(request, lease, since: since)
        case .acquiring, .idle, .loggingIn, .readingLatches: break
        }
        // Events of the meantime are lost.
        schedulePoll(isOwn: false)
    }

    private mutating func schedulePoll(isOwn: Bool) {
        poll = (at: now &+ inputs.randomDelay(within: times.spread), isOwn: isOwn)
    }

    /// Adopts a later session that no login waits for, unless it is known to be unusable.
    private mutating func adoptIfNews(_ session: [UInt8], _ generation: UInt64) {
        guard state.request == nil, known.isNews(session, generation) else { return }
        takeSession(session, generation)
        reports.removeOffers()
        actions.append(.adoptSession(generation: generation, session))
    }

    private mutating func takeSession(_ session: [UInt8], _ generation: UInt64) {
        sharedFailure = nil
        if known.takeSession(session, generation, now: now) { poll = nil }
    }
}
