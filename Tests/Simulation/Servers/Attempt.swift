// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One sending of a credential's value to a server, until its judgement is known to the daemon or lost.
final class Attempt {
    private unowned let account: Account
    let value: String
    let isRight: Bool
    /// The step in which it was sent.
    let sentAt: Int
    private var isOver = false
    /// The time at which the daemon had the judgement, in ms since 1970; `nil` if it has none.
    private(set) var deliveredAt: Int64?
    /// True if the judgement locks the account.
    var locks = false

    init(_ account: Account, value: String, isRight: Bool, sentAt: Int) {
        self.account = account
        self.value = value
        self.isRight = isRight
        self.sentAt = sentAt
    }

    /// Notes that the daemon has the judgement.
    func isDelivered() {
        end {
            deliveredAt = account.simulation.now
            account.judged(self)
        }
    }

    /// Notes that the daemon does not know the judgement.
    func isLost() { end { account.lost(self) } }

    /// Notes that nobody has asked for the judgement, since a while ago.
    func isAbandoned() { end { account.abandoned(self) } }

    /// Notes that the judgement says nothing: the resource refuses everybody.
    func isMoot() { end { account.passed(self) } }

    private func end(_ body: () -> Void) {
        guard !isOver else { return }
        isOver = true
        body()
    }
}
