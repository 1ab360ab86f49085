// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling

/// Fields `WWW-Authenticate`, one a line, each a list of challenges (RFC 9110 §11.6.1), some as servers write them.
struct ChallengeLanguage: Language {
    static let name = "challenges"

    var sentence = Sentence()
    private var expected: [AuthenticationChallenge] = []
    private var hasUnread = false

    mutating func write() {
        expected.removeAll(keepingCapacity: true)
        hasUnread = false
        let isOdd = sentence.choices.once(in: 4)
        sentence.put("w")
        let lines = sentence.choices.once(in: 4) ? 2 : 1
        let odd = isOdd ? sentence.choices.below(lines) : -1
        for line in 0..<lines {
            if line > 0 { sentence.put("\n") }
            let count = 1 + sentence.choices.below(3)
            let first = line == odd ? sentence.choices.below(count) : -1
            for index in 0..<count {
                if index > 0 { putComma() }
                if index == first {
                    putOdd(sentence.choices.pick(Self.odd))
                    putComma()
                }
                putChallenge()
            }
        }
    }

    private mutating func putChallenge() {
        let scheme = sentence.choices.pick(Self.schemes)
        let start = sentence.count
        sentence.putInSomeCase(scheme)
        let name = text(from: start)
        switch sentence.choices.below(4) {
        case 0:
            expected.append(.init(scheme: name, token68: nil, parameters: []))
        case 1:
            for _ in 0...sentence.choices.below(2) { sentence.put(" ") }
            let start = sentence.count
            sentence.put(sentence.choices.pick(Self.tokens68))
            let token = text(from: start)
            if sentence.choices.once(in: 8) { sentence.put(" ") }
            expected.append(.init(scheme: name, token68: token, parameters: []))
        default:
            let mask = sentence.choices.below(1 << Self.names.count)
            var parameters: [AuthenticationChallenge.Parameter] = []
            for (index, known) in Self.names.enumerated() where mask >> index & 1 == 1 {
                // After a scheme a comma is an empty element of its list.
                if parameters.isEmpty, !sentence.choices.once(in: 8) { sentence.put(" ") } else { putComma() }
                parameters.append(putParameter(known))
            }
            expected.append(.init(scheme: name, token68: nil, parameters: parameters))
        }
    }

    private mutating func putOdd(_ odd: Odd) {
        sentence.put(odd.text)
        hasUnread = hasUnread || odd.hasUnread
        guard let scheme = odd.scheme else { return }
        let parameters = odd.parameters.map { AuthenticationChallenge.Parameter(name: $0, value: $1) }
        expected.append(.init(scheme: scheme, token68: nil, parameters: parameters))
    }

    private mutating func putParameter(_ name: StaticString) -> AuthenticationChallenge.Parameter {
        sentence.putInSomeCase(name)
        sentence.putRareBlanks()
        sentence.put("=")
        sentence.putRareBlanks()
        var value: [UInt8] = []
        if sentence.choices.once(in: 3) {
            let start = sentence.count
            sentence.put(sentence.choices.pick(Self.tokens))
            value = Array(sentence.bytes[start...])
        } else {
            sentence.put("\"")
            for _ in 0..<sentence.choices.below(4) {
                let piece = sentence.choices.pick(Self.pieces)
                for byte in piece.utf8 {
                    value.append(byte)
                    let isSpecial = byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
                    if isSpecial || byte < 0x80 && sentence.choices.once(in: 24) { sentence.put("\\") }
                    sentence.put(byte)
                }
            }
            sentence.put("\"")
        }
        return .init(name: "\(name)".lowercased(), value: String(decoding: value, as: UTF8.self))
    }

    private mutating func putComma() { sentence.put(sentence.choices.pick(RequestWords.commas)) }

    private func text(from start: Int) -> String { String(decoding: sentence.bytes[start...], as: UTF8.self) }

    func check() throws(Violation) {
        let values = sentence.bytes.dropFirst().split(separator: 10).map { String(decoding: $0, as: UTF8.self) }
        let list = ChallengeList(values)
        try require(list.challenges == expected, "\(list.challenges), not \(expected)")
        try require(list.unread.isEmpty != hasUnread, "not understood: \(list.unreadText ?? "nothing")")
        for challenge in expected where challenge.isScheme("Digest") { try checkDigest(challenge) }
    }

    /// Checks that a Digest challenge is accepted with its parameters, or skipped because one is missing.
    private func checkDigest(_ challenge: AuthenticationChallenge) throws(Violation) {
        let algorithms = ["md5", "sha-256", "sha-512-256", "md5-sess", "sha-256-sess", "sha-512-256-sess"]
        let algorithm = challenge["algorithm"]?.lowercased()
        let words = challenge["qop"]?.lowercased().split { ", \t".contains($0) } ?? []
        let isSession = algorithm?.hasSuffix("-sess") ?? false
        let isUsable =
            challenge["nonce"] != nil && algorithm.map(algorithms.contains) ?? true
            && (words.isEmpty ? !isSession : words.contains("auth") || words.contains("auth-int"))
        let digest = DigestChallenge(challenge)
        try require((digest != nil) == isUsable, "\(challenge) is used: \(digest != nil)")
        guard let digest else { return }
        try require(
            digest.realm == challenge["realm"] ?? "" && digest.nonce == challenge["nonce"]
                && digest.opaque == challenge["opaque"]
                && digest.isSession == isSession && digest.isStale == (challenge["stale"]?.lowercased() == "true")
                && (digest.protection == nil) == words.isEmpty
                && (digest.protection != .integrity || !words.contains("auth")), "\(challenge) is read as \(digest)")
    }

    private static let schemes: [StaticString] = [
        "Basic", "Digest", "Digest", "Digest", "Bearer", "Negotiate", "!#$%&'*+-.^_`|~0", "a",
    ]
    private static let names: [StaticString] = [
        "realm", "nonce", "qop", "algorithm", "stale", "opaque", "scope", "x-!#$",
    ]
    private static let tokens: [StaticString] = [
        "a", "true", "auth", "MD5", "SHA-256", "utf-8", "!#$%&'*+-.^_`|~", "0", "md5-sess", "FALSE",
    ]
    private static let tokens68: [StaticString] = [
        "a", "YII=", "abc==", "-._~+/0Z", "a/b+c", "TlRMTVNTUAACAAAA====", "0",
    ]
    private static let pieces: [String] = [
        "a b", ",", "=", "\"", "\\", "auth", "auth,auth-int", "auth-int", "\u{E9}", "\t", "Basic realm=", "SHA-256",
        "MD5-sess", "true", "\u{1F600}", "",
    ]
    /// A challenge that departs from the grammar, with its meaning.
    private struct Odd {
        let text: StaticString
        /// `nil` if there is no challenge in it.
        let scheme: String?
        var parameters: KeyValuePairs<String, String> = [:]
        var hasUnread = false
    }

    private static let odd: [Odd] = [
        Odd(text: "Basic realm=a b c", scheme: "Basic", parameters: ["realm": "a b c"]),
        Odd(text: "Basic realm='a, Digest b'", scheme: "Basic", parameters: ["realm": "a, Digest b"]),
        Odd(text: "Basic realm=\"a\" b=c", scheme: "Basic", parameters: ["realm": "a", "b": "c"]),
        Odd(text: "Basic; realm=\"a\"; b=c", scheme: "Basic", parameters: ["realm": "a", "b": "c"]),
        Odd(text: "Basic\trealm=\u{E9}", scheme: "Basic", parameters: ["realm": "\u{E9}"]),
        Odd(text: "Bearer a=https://h/?b=c;d=e", scheme: "Bearer", parameters: ["a": "https://h/?b=c;d=e"]),
        Odd(text: "Basic a==b", scheme: "Basic", parameters: ["a": "=b"]),
        Odd(text: "Basic a=\"\u{1}\u{7F}\"", scheme: "Basic", parameters: ["a": "\u{1}\u{7F}"]),
        Odd(text: "Basic realm=, b=c", scheme: "Basic", parameters: ["realm": "", "b": "c"]),
        Odd(text: "Basic a=b, A=\"c\"", scheme: "Basic", parameters: ["a": "b"], hasUnread: true),
        Odd(text: "Basic a b", scheme: "Basic", hasUnread: true),
        Odd(text: "Basic \"a, b\"", scheme: "Basic", hasUnread: true),
        Odd(text: "Basic realm", scheme: "Basic", hasUnread: true),
        Odd(text: "Digest nonce=a, stale", scheme: "Digest", parameters: ["nonce": "a"], hasUnread: true),
        Odd(text: "Basic/2 realm=a", scheme: nil, hasUnread: true),
        Odd(text: "\u{E9}", scheme: nil, hasUnread: true), Odd(text: "(", scheme: nil, hasUnread: true),
        Odd(text: "Basic:a", scheme: nil, hasUnread: true), Odd(text: "=", scheme: nil, hasUnread: true),
    ]
}
