// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Trials of one session's value, which no server is known to have accepted (CONTRIBUTING, rule 4).
///
/// A request tries the value while the others wait. If its address says nothing, the next one tries at its own address. Usual
/// policies lock an account after three to five attempts, so fruitless trials are limited: four in a minute, two of them at one
/// address, so that a page that always fails leaves the others to the rest. After 2 s of silence another request tries, too.
struct SessionTrials<Waiter: Sendable & Equatable>: Sendable {
    private struct Running: Sendable {
        var waiter: Waiter
        var address: String?
        var isSilent = false
    }

    /// Time in ms for which fruitless trials count.
    static var span: Int64 { 60_000 }
    /// Maximum number of fruitless trials in that time.
    static var most: Int { 4 }
    private static var mostPerAddress: Int { 2 }
    private static var mostAtOnce: Int { 2 }

    private var running: [Running] = []
    /// Fruitless trials, the oldest first.
    private var fruitless: [(at: Int64, address: String?)] = []

    /// True if no request tries the value.
    var isEmpty: Bool { running.isEmpty }

    /// Returns true if that request tries the value.
    func contains(_ waiter: Waiter) -> Bool { running.contains { $0.waiter == waiter } }

    /// Returns true if a request at `address` may try the value now. With `isFresh`, only where no trial was fruitless.
    func allows(_ address: String?, isFresh: Bool = false, now: Int64) -> Bool {
        guard running.count < Self.mostAtOnce, running.allSatisfy(\.isSilent), exhaustedUntil(now: now) == nil else {
            return false
        }
        guard let address else { return true }
        let failed = recent(now).count { $0.address == address }
        return failed == 0 || !isFresh && failed < Self.mostPerAddress && running.isEmpty
    }

    /// Returns the end of the minute if the number of trials in it is reached, in ms since 1970.
    func exhaustedUntil(now: Int64) -> Int64? {
        let recent = recent(now)
        guard recent.count >= Self.most else { return nil }
        return recent[recent.count - Self.most].at.saturatingAdd(Self.span)
    }

    /// Returns the time at which a request at `address` may try again, if the last ones said nothing.
    func refusedUntil(_ address: String?, now: Int64) -> Int64? {
        guard let address else { return nil }
        let failed = recent(now).filter { $0.address == address }
        guard failed.count >= Self.mostPerAddress else { return nil }
        return failed[failed.count - Self.mostPerAddress].at.saturatingAdd(Self.span)
    }

    /// Starts the trial of a request.
    mutating func start(_ waiter: Waiter, at address: String?) {
        running.append(Running(waiter: waiter, address: address))
    }

    /// Records that a trial has had no answer for a while; returns false if it is not running, or was silent before.
    mutating func becameSilent(_ waiter: Waiter, now: Int64) -> Bool {
        guard let index = running.firstIndex(where: { $0.waiter == waiter && !$0.isSilent }) else { return false }
        running[index].isSilent = true
        record(running[index].address, now)
        return true
    }

    /// Ends the trial of a request. A fruitless one counts, unless it was counted when it became silent.
    mutating func end(_ waiter: Waiter, isFruitless: Bool, now: Int64) {
        guard let index = running.firstIndex(where: { $0.waiter == waiter }) else { return }
        let trial = running.remove(at: index)
        if isFruitless, !trial.isSilent { record(trial.address, now) }
    }

    /// Ends all trials, because one has decided.
    mutating func decided() { running = [] }

    /// Forgets the fruitless trials: another value, or an operator's command.
    mutating func forget() { fruitless = [] }

    private mutating func record(_ address: String?, _ now: Int64) {
        fruitless.append((now, address))
        if fruitless.count > 2 * Self.most { fruitless.removeFirst() }
    }

    /// Returns the fruitless trials of the last minute; none after the clock was set back.
    private func recent(_ now: Int64) -> [(at: Int64, address: String?)] {
        fruitless.filter { $0.at <= now && now.saturatingSubtract($0.at) < Self.span }
    }
}

/// Reason why a request that tried a session showed nothing about its credential.
///
/// It is that request's own failure: no pause follows for others (CONTRIBUTING, rule 4).
public enum UnansweredTrial: Sendable, Equatable {
    /// The caller left before the answer.
    case abandoned
    /// The connection was lost, or the answer is unusable.
    case lost
    /// The server was unable to check the credential: 429 or 5xx.
    case status(Int)
    /// No answer came in time.
    case timedOut

    private var sentence: String {
        switch self {
        case .abandoned: "its caller left before the answer"
        case .lost: "it got no usable answer"
        case .status(let status): "the server answered \(status)"
        case .timedOut: "no answer came in time"
        }
    }

    /// Returns the failure for all who ask for the session during the pause after too many trials.
    func failure(of challenge: String, after count: Int, retryAt: Int64) -> LoginFailure {
        LoginFailure(
            .failed, challenge: challenge,
            detail:
                "\(count) requests within a minute carried the credential, and none showed if the server accepts it: of the "
                + "last one, \(sentence). The server may have counted them as attempts, so the next request tries again "
                + "after the minute. Check the server, or set `prove-at` to an address that every accepted user may GET.",
            retryAt: retryAt)
    }
}

extension LoginFailure {
    /// Returns the failure of a request at an address whose last trials were fruitless.
    static func fruitlessAddress(of challenge: String, retryAt: Int64) -> LoginFailure {
        LoginFailure(
            .failed, challenge: challenge,
            detail:
                "The last requests to this address carried the credential, and the server's answers did not show if it accepts "
                + "the credential. A request to another address tries it; this one may again after a minute. Check the server.",
            retryAt: retryAt)
    }
}
