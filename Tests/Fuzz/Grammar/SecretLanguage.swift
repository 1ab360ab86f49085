// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling

/// What other programs say while they hold a credential's secret: it is in what they say, in one coding or another, and must not be in what
/// we say of it.
struct SecretLanguage: Language {
    static let name = "secrets"
    static let target = "values"
    static let period: UInt64 = 32

    var sentence = Sentence()
    private var holds = false

    mutating func write() {
        sentence.put(sentence.choices.pick(Array("thj".utf8)))
        holds = false
        for _ in 0...sentence.choices.below(5) {
            if sentence.choices.once(in: 3) {
                sentence.put(sentence.choices.pick(MarkedSecret.forms).bytes)
                holds = true
            } else {
                sentence.put(sentence.choices.pick(Self.noise))
            }
        }
    }

    func check() throws(Violation) {
        let bytes = Array(sentence.bytes.dropFirst())
        let told = Redaction.text(String(decoding: bytes, as: UTF8.self), without: [MarkedSecret.text])
        if let coding = MarkedSecret.coding(in: Array(told.utf8)) {
            throw Violation(description: "the secret is told as \(coding)")
        }
        try require(holds || Array(told.utf8) == bytes, "a text without the secret is changed")
        try checkCleaned(bytes)
        do throws(HelperAnswer.Unusable) {
            _ = try HelperAnswer(parsing: bytes)
        } catch {
            try require(MarkedSecret.coding(in: Array(error.reason.utf8)) == nil, "the secret is in \(error.reason)")
        }
        try checkDigest()
    }

    /// What an upstream says back of a value that was put into its request.
    private func checkCleaned(_ bytes: [UInt8]) throws(Violation) {
        let values = RequestInjections(parameters: [], path: nil, members: [], secrets: [Secret(MarkedSecret.text)])
        var cleaner = values.cleaner.bodyCleaner()
        var cleaned: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 7) {
            cleaned += cleaner.clean(Array(bytes[start..<min(start + 7, bytes.count)]), isEnd: false)
        }
        cleaned += cleaner.clean([], isEnd: true)
        // It looks for what a page, an address or JSON may have.
        let coding = MarkedSecret.coding(in: cleaned)
        try require(
            coding == nil || ["base64", "hexadecimal"].contains(coding),
            "the secret goes to the caller as \(coding ?? "")")
    }

    /// An answer of Digest proves the secret and does not hold it.
    private func checkDigest() throws(Violation) {
        let credential = Credential(
            name: "c", fields: ["username": Secret("ann"), "password": Secret(MarkedSecret.text)])
        let url = WebURL(origin: Origin(scheme: .https, host: "h"), path: "/")
        let field = #"Digest realm="r", nonce="n\#(sentence.count)", qop="auth", algorithm=SHA-256"#
        guard let challenges = try? AuthenticationChallenge.parse([field]),
            let challenge = DigestChallenge.strongest(of: challenges),
            let pair = try? NameAndPassword(credential, challenge: "c")
        else { throw Violation(description: "no challenge") }
        let signer = DigestSigner(challenge, at: url, for: pair, name: "c", digests: OneDigest())
        let request = SigningRequest(method: "GET", origin: url.origin, target: "/")
        for field in (try? signer.sign(request).fields) ?? [] {
            try require(MarkedSecret.coding(in: field.value.revealBytes()) == nil, "the secret is in \(field.name)")
        }
        let told = ["\(credential)", "\(pair)", "\(challenge)", String(reflecting: credential)]
        for text in told { try require(MarkedSecret.coding(in: Array(text.utf8)) == nil, "the secret is in \(text)") }
    }

    private static let noise: [StaticString] = [
        "error: ", "{\"session\":", "\"", "}", "\n", "password=", "wrong password ", "%", "%2", "\\", "\u{E9}", "Zq7/x",
        "=", "<redacted>", "Wnpo", ": ", "0", "{}",
        "{\"failure\":\"locked\",\"message\":\"",
    ]
}
