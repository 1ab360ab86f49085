// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A challenge of Digest authentication (RFC 7616 §3.3; without `qop`, RFC 2069 §2.1.1).
public struct DigestChallenge: Sendable, Equatable {
    /// How a request is protected.
    public enum Protection: String, Sendable {
        /// Method and target.
        case authentication = "auth"
        /// The body as well.
        case integrity = "auth-int"
    }

    /// The protection space's name.
    public let realm: String
    /// The server's nonce.
    public let nonce: String
    /// What has to be sent back as it is.
    public let opaque: String?
    /// The hash function.
    public let algorithm: DigestAlgorithm
    /// Whether the password's hash is mixed with the first nonces (`-sess`).
    public let isSession: Bool
    /// The algorithm as the server wrote it; `nil` where it did not, which is MD5.
    public let algorithmName: String?
    /// The protection to use: `auth` where it is offered. `nil` where the server knows none (RFC 2069).
    public let protection: Protection?
    /// Whether only the nonce of the last answer was too old, not the answer wrong.
    public let isStale: Bool
    /// The beginnings of the addresses that share this challenge, as written; empty where all of the server does.
    public let domain: [String]
    /// Whether the user's name is to be sent hashed.
    public let hashesUserName: Bool
    /// Whether the server says that it reads names in UTF-8.
    public let isUTF8: Bool

    /// Reads `challenge`. `nil` where it is none of Digest, lacks `realm` or `nonce`, or asks for what we do not know:
    /// such a challenge is ignored, as RFC 7616 §3.3 demands for unknown algorithms.
    public init?(_ challenge: AuthenticationChallenge) {
        guard challenge.isScheme("Digest"), let realm = challenge["realm"], let nonce = challenge["nonce"],
            let (algorithm, isSession) = Self.algorithm(challenge["algorithm"])
        else { return nil }
        if let offered = challenge["qop"] {
            let words = offered.split { $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
            if words.contains(Protection.authentication.rawValue) {
                protection = .authentication
            } else if words.contains(Protection.integrity.rawValue) {
                protection = .integrity
            } else {
                return nil
            }
        } else {
            // Without a protection there is no client nonce to mix in.
            guard !isSession else { return nil }
            protection = nil
        }
        self.realm = realm
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

    /// The strongest challenge of `challenges` that we can answer, of `realm` only where one is given. Of equally strong
    /// ones, the first: servers list what they prefer first (RFC 7616 §3.7).
    public static func strongest(of challenges: [AuthenticationChallenge], realm: String? = nil) -> DigestChallenge? {
        var best: DigestChallenge?
        for challenge in challenges.compactMap(DigestChallenge.init) where realm == nil || realm == challenge.realm {
            if best.map({ challenge.strength > $0.strength }) ?? true { best = challenge }
        }
        return best
    }

    /// The parameters of a challenge like this one with `nonce` in it.
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

    /// RFC 7616 §6.1, whatever the case.
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

    private static func isTrue(_ value: String?) -> Bool { value?.lowercased() == "true" }
}
