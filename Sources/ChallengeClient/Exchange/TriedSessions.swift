// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The word of an answer on an unverified session that its request carried.
package struct SessionJudgement: Sendable, Equatable {
    /// The place of its login in the route's list.
    package let slot: Int
    /// The server's view of it.
    package let proof: SessionTable<ExchangeTicket>.Proof

    /// A judgement.
    package init(slot: Int, proof: SessionTable<ExchangeTicket>.Proof) {
        self.slot = slot
        self.proof = proof
    }
}

/// The unverified sessions that one exchange tries for all (CONTRIBUTING, rules 1 and 3), by their slots, and what came of them.
struct TriedSessions {
    typealias Proof = SessionTable<ExchangeTicket>.Proof

    private var slots: [Int] = []
    private var judgements: [SessionJudgement] = []

    /// True if none is tried.
    var isEmpty: Bool { slots.isEmpty }
    /// True if a judgement has not been handed out yet.
    var hasJudgements: Bool { !judgements.isEmpty }

    /// Returns whether the session of `slot` is among them.
    func contains(_ slot: Int) -> Bool { slots.contains(slot) }

    /// The session of `slot` is tried from now on.
    mutating func add(_ slot: Int) {
        if !slots.contains(slot) { slots.append(slot) }
    }

    /// Others find out about the session of `slot`.
    mutating func hand(over slot: Int) { slots.removeAll { $0 == slot } }

    /// Judges all by an answer. What is not the challenge again proves a session, unless the server judged nothing at all.
    mutating func judge(by answer: ExaminedAnswer) {
        guard answer.challenge != .needsBody else { return }
        for slot in slots {
            switch answer.challenge {
            case .refused where slot == answer.slot: continue
            case .stale where slot == answer.slot: judge(slot, .outdated)
            default: judge(slot, answer.saysNothing ? .undecided : .accepted)
            }
        }
    }

    /// Judges all in the same way.
    mutating func judgeAll(_ proof: Proof) {
        for slot in slots { judge(slot, proof) }
    }

    /// Judges the session of `slot`, if it is one of them.
    mutating func judge(_ slot: Int, _ proof: Proof) {
        guard let index = slots.firstIndex(of: slot) else { return }
        slots.remove(at: index)
        judgements.append(SessionJudgement(slot: slot, proof: proof))
    }

    /// Hands out a judgement, each once.
    mutating func takeJudgement() -> SessionJudgement? { judgements.isEmpty ? nil : judgements.removeFirst() }
}
