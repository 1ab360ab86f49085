// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Crypto

/// Digest authentication (RFC 7616) with nonces that grow old, and counts that must rise.
final class DigestProtection: Protection {
    let account: Account
    let isScheme = true
    let isTriedByHand = false
    private var counts: [String: Int] = [:]
    /// The requests that used each count of a nonce, whether or not the nonce was accepted.
    private var uses: [String: String] = [:]
    private var last = 0
    /// True if it offers MD5 beside SHA-256.
    private let offersWeaker: Bool
    private let isAlone: Bool
    /// True if the daemon answers one realm only.
    private let hasRealm: Bool
    private static let otherRealm = "elsewhere"

    /// `isAlone`: no other protection answers in its place.
    init(_ account: Account, isAlone: Bool = true) {
        self.account = account
        self.isAlone = isAlone
        offersWeaker = account.simulation.chance.oneIn(2)
        hasRealm = isAlone && account.simulation.chance.oneIn(2)
    }

    var configuration: [String] { ["scheme: [digest]"] + (hasRealm ? ["realm: \(account.name)"] : []) }

    func fields(of value: String) -> [String: String] { ["username": "ann", "password": value] }

    /// The proof in a request.
    private enum Proof {
        case nothing
        /// The nonce is old, or its count was used: the password was not examined.
        case stale
        case password(String)
    }

    private func proof(in request: ServerRequest) -> Proof {
        guard let value = request.value("authorization"), value.hasPrefix("Digest ") else { return .nothing }
        func part(_ name: String) -> String {
            value.components(between: " \(name)=\"", and: "\"")
                ?? value.components(between: " \(name)=", and: ",")
                ?? String(value.components(after: " \(name)=") ?? "")
        }
        let (nonce, count) = (part("nonce"), Int(part("nc"), radix: 16) ?? 0)
        if part("realm") == Self.otherRealm {
            account.simulation.violated("rule 10: a challenge of another realm is answered")
        }
        if part("algorithm") != "SHA-256" {
            account.simulation.violated("rule 10: \(part("algorithm")) is used, although SHA-256 is offered")
        }
        guard part("uri") == request.target else {
            account.simulation.violated("the digest is for \(part("uri")), sent to \(request.target)")
            return .nothing
        }
        checkUse(of: nonce, count, in: request)
        guard let used = counts[nonce] else { return .stale }
        guard count > used else { return .stale }
        for password in account.values.reversed() {
            let first = Self.hash("ann:\(account.name):\(password)")
            let second = Self.hash("\(request.method):\(request.target)")
            let right = Self.hash("\(first):\(nonce):\(part("nc")):\(part("cnonce")):auth:\(second)")
            if right == part("response") {
                counts[nonce] = count
                return .password(password)
            }
        }
        account.simulation.violated("a digest of no password of \(account.name): \(value)")
        return .nothing
    }

    /// Checks that no two requests have one count of a nonce (RFC 7616 §3.4), except one that is sent again after a
    /// lost connection. A killed process forgets its counts.
    private func checkUse(of nonce: String, _ count: Int, in request: ServerRequest) {
        let name = "\(nonce) \(count)"
        let sender = request.isSide ? "a login" : request.value("x-order") ?? "somebody"
        if let other = uses.updateValue(sender, forKey: name), other != sender, account.simulation.rules.restarts == 0 {
            account.simulation.violated("rule 8: \(other) and \(sender) have count \(count) of \(nonce)")
        }
    }

    private static func hash(_ text: String) -> String {
        SHA256.hash(data: Array(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    func examine(_ request: ServerRequest) -> Examination {
        let examination = examineUsually(request)
        guard isAlone, case .unreadable = ResourceManner(request, in: account.simulation),
            case .demand(var answer) = examination
        else { return examination }
        // An unreadable challenge hides no other one.
        answer.fields.append(("WWW-Authenticate", "Basic realm=\"\(account.name)"))
        return .demand(answer)
    }

    private func examineUsually(_ request: ServerRequest) -> Examination {
        switch ResourceManner(request, in: account.simulation) {
        case .unknownScheme:
            isPassed(request)
            return .demand(ResourceManner.strangeChallenge)
        case .otherRealm where hasRealm:
            isPassed(request)
            return .demand(ServerAnswer(401, [challenge(of: Self.otherRealm)], body: "who are you"))
        default: break
        }
        switch proof(in: request) {
        case .nothing: return .demand(refusal())
        case .stale: return .demand(refusal(isStale: true))
        case .password(let password):
            // A nonce may grow old before its first use.
            if account.simulation.isFault(12) {
                counts = [:]
                return .demand(refusal(isStale: true))
            }
            let attempt = account.judge(password, sentAt: request.sentAt)
            if attempt.isRight { return .pass(attempt) }
            return .demand(refusal().waiting(&account.simulation.chance).judging(attempt))
        }
    }

    func isRefused(_ order: Order) -> Bool { isStrange(order) }

    /// Returns its answer if each nonce is too old by the time of its use.
    func outdatedAnswer(to request: ServerRequest) -> ServerAnswer {
        refusal(isStale: request.value("authorization") != nil)
    }

    func isStrange(_ order: Order) -> Bool {
        if order.isForbidden { return false }
        return switch ResourceManner(order, in: account.simulation) {
        case .unknownScheme: true
        case .otherRealm: hasRealm
        default: false
        }
    }

    func value(in request: ServerRequest) -> String? {
        if case .password(let password) = proof(in: request) { return password }
        return nil
    }

    func refusal() -> ServerAnswer { refusal(isStale: false) }

    private func refusal(isStale: Bool) -> ServerAnswer {
        ServerAnswer(401, challenges(isStale: isStale), body: "who are you")
    }

    /// Returns its challenges, in the order that it prefers or not.
    func challenges(isStale: Bool = false) -> [(name: String, value: String)] {
        let usual = challenge(of: account.name, isStale: isStale)
        guard offersWeaker else { return [usual] }
        let weaker = challenge(of: account.name, by: "MD5", isStale: isStale)
        return account.simulation.chance.oneIn(2) ? [usual, weaker] : [weaker, usual]
    }

    private func challenge(
        of realm: String, by algorithm: String = "SHA-256", isStale: Bool = false
    ) -> (name: String, value: String) {
        last += 1
        let nonce = "nonce\(last)of\(account.name)"
        counts[nonce] = 0
        let value =
            "Digest realm=\"\(realm)\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=\(algorithm)"
            + (isStale ? ", stale=true" : "")
        return ("WWW-Authenticate", value)
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }

    func endSessions() {
        account.ends += 1
        counts = [:]
    }
}
