// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

// What is counted of the challenges that an exchange meets; nothing where it meets none.
extension Exchange {
    /// A challenge of the login in `slot` was met, and `action` is what the machine makes of it.
    func noteChallenge(at slot: Int, then action: ExchangeMachine.Action) {
        challengedSlot = slot
        switch action {
        // What comes of it is known when the request is sent again, or not.
        case .discard: break
        case .deliver: noteChallenge(.passed)
        case .fail(let error) where error.kind == .bodyNotReplayable: noteChallenge(.notReplayable)
        default: noteChallenge(.failed)
        }
    }

    /// What came of the challenge that was met.
    func noteChallenge(_ outcome: ChallengeCount.Outcome) {
        guard let slot = challengedSlot else { return }
        challengedSlot = nil
        guard let client, let route, slot < route.slots.count, !request.isCheck else { return }
        client.meter.met(route.slots[slot].login.name, outcome)
    }
}
