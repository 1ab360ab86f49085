// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A token that a server has issued, and its uses.
final class IssuedToken {
    /// Its end, in ms since 1970.
    let end: Int64
    private let life: Int64
    let scopes: Set<String>
    /// The sending of the secret that it was issued for.
    private let attempt: Attempt
    /// The time at which the daemon got it, in ms since 1970; 0 if it has not.
    var deliveredAt: Int64 { attempt.deliveredAt ?? 0 }
    /// True if a resource has refused it.
    var isRefused = false
    /// The times of the first and of the last use at which it has to be renewed, in ms since 1970.
    private var uses: (first: Int64, last: Int64)?

    init(end: Int64, life: Int64, scopes: Set<String>, _ attempt: Attempt) {
        self.end = end
        self.life = life
        self.scopes = scopes
        self.attempt = attempt
    }

    /// Notes a use: a renewal begins with the first one after three quarters of the lead (30 s, or a fifth of the life) are left.
    func isUsed(at now: Int64) {
        let lead = min(30_000, life / 5) * 3 / 4
        guard now > end - lead, now < end - 1_500 else { return }
        uses = (uses?.first ?? now, now)
    }

    /// Returns true if another is asked for at `now` only, although uses have shown before its end that it is needed.
    ///
    /// `amongOthers`: logins for other scopes may have been under way, so that only a use after a second or more counts.
    func wasRenewable(at now: Int64, amongOthers: Bool) -> Bool {
        guard now > end, let uses, deliveredAt > 0 else { return false }
        return !amongOthers || uses.last - uses.first > 2_000
    }
}
