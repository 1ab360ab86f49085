// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

extension UpstreamClient {
    /// For how long an upstream that let the wait for `100 Continue` pass is not asked again.
    private static let ignoredTime = Duration.seconds(600)
    /// How long it may take to answer, in milliseconds: a little less than libcurl waits.
    static let expectationMilliseconds = 900
    /// How much is kept for libcurl's own second attempt on another connection: what costs no more than the window.
    private static let cheap = ReplayBuffer.window

    /// What of a request's body is kept, and whether that is known to be less than all of it.
    ///
    /// Where nothing can challenge, nothing needs to be sent again, but for what libcurl sends again by itself on a kept
    /// connection that turns out to be dead. A body that is known not to fit takes no room on disk: its refusal has to
    /// come while the beginning is all that has gone.
    func keeping(bodyOf request: ExchangeRequest, at route: RouteSessions) -> (tiers: ReplayTiers, isTooLong: Bool) {
        guard route.canBeChallenged, !request.keepsCredentials else {
            let memory = request.method.isIdempotent ? min(plan.replay.memory, Self.cheap) : 0
            return (ReplayTiers(memory: memory), false)
        }
        guard let spool = runtime.services.replay, spool.limit > 0, plan.replay.disk > 0 else {
            let tiers = ReplayTiers(memory: plan.replay.memory)
            return (tiers, request.length.map { !tiers.fits($0) } ?? false)
        }
        // Of unknown length: sent at once and kept as it comes. Nearly all such bodies are short, and a login ahead of
        // them, or a wait for `100 Continue`, would be a second lost on each for the sake of the few that are not.
        guard let length = request.length else { return (plan.replay, false) }
        let tiers = ReplayTiers(memory: plan.replay.memory, disk: min(plan.replay.disk, spool.room))
        guard tiers.fits(length) else { return (ReplayTiers(memory: plan.replay.memory), true) }
        return (plan.replay, false)
    }

    /// Whether a body that cannot be kept is to wait for the upstream's word (RFC 9110 §10.1.1), so that a challenge comes
    /// before it. Not where the upstream has ignored that lately: it then costs a wait now and then, and not one each time.
    var honorsExpectations: Bool { runtime.loop.now >= expectationsIgnoredUntil }

    /// What the upstream made of an expectation.
    func noteExpectation(isHonored: Bool) {
        expectationsIgnoredUntil = isHonored ? runtime.loop.now : runtime.loop.now + Self.ignoredTime
    }
}

extension ExchangeRequest {
    /// The body's length in bytes, where it is known beforehand.
    var length: UInt64? {
        switch framing {
        case .none: 0
        case .length(let length): length
        case .chunked: nil
        }
    }
}
