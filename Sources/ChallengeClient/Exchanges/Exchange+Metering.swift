// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

// What is counted of the challenges that an exchange meets; nothing where it meets none.
extension Exchange {
    /// What came of the challenge that was met.
    func noteChallenge(_ outcome: ChallengeCount.Outcome) {
        guard let slot = challengedSlot else { return }
        challengedSlot = nil
        guard let client, let route, slot < route.slots.count, !request.isCheck else { return }
        client.meter.met(route.slots[slot].login.name, outcome)
    }
}
