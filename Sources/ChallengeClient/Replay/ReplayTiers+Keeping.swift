// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

extension ReplayTiers {
    /// How much is kept for libcurl's own second attempt on another connection: what costs no more than the window.
    private static let cheap = ReplayBuffer.window

    /// What of a request's body is kept, and whether that is known to be less than all of it.
    ///
    /// Where nothing can challenge, nothing needs to be sent again, but for what libcurl sends again by itself on a kept
    /// connection that turns out to be dead. A body that is known not to fit takes no room on disk: its refusal has to
    /// come while the beginning is all that has gone.
    func keeping(
        bodyOf request: ExchangeRequest, canBeChallenged: Bool, spool: ReplaySpool?
    ) -> (tiers: ReplayTiers, isTooLong: Bool) {
        guard canBeChallenged, !request.keepsCredentials else {
            let kept = request.method.isIdempotent ? min(memory, Self.cheap) : 0
            return (ReplayTiers(memory: kept), false)
        }
        guard let spool, spool.limit > 0, disk > 0 else {
            let tiers = ReplayTiers(memory: memory)
            return (tiers, request.length.map { !tiers.fits($0) } ?? false)
        }
        // Of unknown length: sent at once and kept as it comes. Nearly all such bodies are short, and a login ahead of
        // them, or a wait for `100 Continue`, would be a second lost on each for the sake of the few that are not.
        guard let length = request.length else { return (self, false) }
        let tiers = ReplayTiers(memory: memory, disk: min(disk, spool.room))
        guard tiers.fits(length) else { return (ReplayTiers(memory: memory), true) }
        return (self, false)
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
