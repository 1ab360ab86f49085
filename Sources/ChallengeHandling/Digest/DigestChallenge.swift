// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A challenge of Digest authentication (RFC 7616 §3.3; without `qop`, RFC 2069 §2.1.1).
public struct DigestChallenge: Sendable, Equatable {
    /// The parts of a request that are protected.
    public enum Protection: String, Sendable {
        /// Method and target.
        case authentication = "auth"
        /// The body as well.
        case integrity = "auth-int"
    }

    /// The name of the protection space.
    public let realm: String
    /// The server's nonce.
    public let nonce: String
    /// The text to be returned unchanged.
    public let opaque: String?
    /// The hash function.
    public let algorithm: DigestAlgorithm
    /// True if the password's hash is combined with the first nonces (`-sess`).
    public let isSession: Bool
    /// The algorithm as the server wrote it; `nil` if the server named no algorithm, which means MD5.
    public let algorithmName: String?
    /// The protection to use, `auth` if offered. `nil` if the server does not support it (RFC 2069).
    public let protection: Protection?
    /// True if the last answer was right, but its nonce too old.
    public let isStale: Bool
    /// Prefixes of the addresses that share this challenge, as written. Empty if the whole server does.
    public let domain: [String]
    /// True if the user name must be sent hashed.
    public let hashesUserName: Bool
    /// True if the server declares that it reads names in UTF-8.
    public let isUTF8: Bool

    /// Parses `challenge`. `nil` if it is not Digest, lacks `nonce`, or needs something unknown: such challenges are
    /// ignored, as RFC 7616 §3.3 requires for unknown algorithms. Without `realm`, the realm is empty, as for curl and
    /// browsers; so is an empty `qop` none. Control characters could not be sent back.
    public init?(_ challenge: AuthenticationChallenge) {
        guard challenge.isScheme("Digest"), let nonce = challenge["nonce"],
            let (algorithm, isSession) = Self.algorithm(challenge["algorithm"]),
            ["realm", "nonce", "opaque", "domain"].allSatisfy({ Self.canGoBack(challenge[$0] ?? "") })
        else { return nil }
        let words = (challenge["qop"] ?? "").split { $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
        if !words.isEmpty {
            if words.contains(Protection.authentication.rawValue) {
                protection = .authentication
            } else if words.contains(Protection.integrity.rawValue) {
                protection = .integrity
            } else {
                return nil
            }
        } else {
            // Without a protection there is no client nonce to include.
            guard !isSession else { return nil }
            protection = nil
        }
        realm = challenge["realm"] ?? ""
        self.nonce = nonce
        self.algorithm = algorithm
        self.isSession = isSession
        algorithmName = challenge["algorithm"]
        opaque = challenge["opaque"]
        isStale = Self.isTrue(challenge["stale"])
        domain = (challenge["domain"] ?? "").split { $0 == " " || $0 == "\t" }.map(String.init)
        hashesUserName = Self.isTrue(challenge["userhash"])
        isUTF8 = challenge["charset"]?.lowercased() == "utf-8"
    }

    /// Returns the strongest of `challenges` that can be answered. If `realm` is given, only its challenges count. Of
    /// equally strong ones the first wins: servers list what they prefer first (RFC 7616 §3.7).
    public static func strongest(of challenges: [AuthenticationChallenge], realm: String? = nil) -> DigestChallenge? {
        var best: DigestChallenge?
        for challenge in challenges.compactMap(DigestChallenge.init) where realm == nil || realm == challenge.realm {
            if best.map({ challenge.strength > $0.strength }) ?? true { best = challenge }
        }
        return best
    }

    /// Returns the parameters of this challenge with `nonce` in place of its nonce.
    func parameters(nonce: String) -> [AuthenticationChallenge.Parameter] {
        let values: [(String, String?)] = [
            ("realm", realm), ("nonce", nonce), ("opaque", opaque), ("algorithm", algorithmName),
            ("qop", protection?.rawValue), ("domain", domain.isEmpty ? nil : domain.joined(separator: " ")),
            ("userhash", hashesUserName ? "true" : nil), ("charset", isUTF8 ? "utf-8" : nil),
        ]
        return values.compactMap { name, value in value.map { .init(name: name, value: $0) } }
    }

    private var strength: Int {
        switch algorithm {
        case .sha512t256, .sha512: 2
        case .sha256: 1
        case .md5, .sha1: 0
        }
    }

    /// Returns the algorithm of that name, ignoring case (RFC 7616 §6.1).
    private static func algorithm(_ name: String?) -> (DigestAlgorithm, isSession: Bool)? {
        switch name?.lowercased() {
        case nil, "md5": (.md5, false)
        case "md5-sess": (.md5, true)
        case "sha-256": (.sha256, false)
        case "sha-256-sess": (.sha256, true)
        case "sha-512-256": (.sha512t256, false)
        case "sha-512-256-sess": (.sha512t256, true)
        default: nil
        }
    }

    private static func canGoBack(_ value: String) -> Bool {
        value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }

    private static func isTrue(_ value: String?) -> Bool { value?.lowercased() == "true" }
}

/// Protection space of a Digest challenge (`domain`, RFC 7616 §3.3).
struct DigestSpace: Sendable {
    /// Prefixes of request targets. Empty if the whole origin shares the space.
    private let beginnings: [String]

    /// Creates the space that `domain` names, challenged at `url`. Other origins are dropped: an answer is never sent
    /// there. A list that does not include the challenged address is unreliable (a proxy in between may have changed
    /// paths), so the whole origin is used.
    init(domain: [String], challengedAt url: WebURL) {
        let addresses = domain.compactMap { url.resolving($0) }.filter { $0.origin == url.origin }
        let beginnings = addresses.map(\.target)
        let holds = beginnings.contains { url.target.utf8.starts(with: $0.utf8) }
        self.beginnings = holds ? beginnings : []
    }

    /// Returns whether a request for `target` carries an answer before it is challenged.
    func contains(_ target: String) -> Bool {
        beginnings.isEmpty || beginnings.contains { target.utf8.starts(with: $0.utf8) }
    }
}
