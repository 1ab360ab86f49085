// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling

/// Output of other programs while they hold a credential's secret. It contains the secret, in one coding or another,
/// and our output about it must not.
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

    /// Checks an upstream's echo of a value that was put into its request.
    private func checkCleaned(_ bytes: [UInt8]) throws(Violation) {
        let values = RequestInjections(parameters: [], path: nil, members: [], secrets: [Secret(MarkedSecret.text)])
        var cleaner = values.cleaner.bodyCleaner()
        var cleaned: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 7) {
            cleaned += cleaner.clean(Array(bytes[start..<min(start + 7, bytes.count)]), isEnd: false)
        }
        cleaned += cleaner.clean([], isEnd: true)
        // The cleaner searches only for codings that a page, an address or JSON may have.
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
        guard let challenge = DigestChallenge.strongest(of: ChallengeList([field]).challenges),
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

/// A secret that occurs nowhere else, and its coded forms.
enum MarkedSecret {
    /// The text has a character for each rule of each coding.
    static let text = "Zq7/x+ w&\"k%9=vJ"

    /// The codings by name; base64 also as it appears within a longer text, whatever precedes it.
    static let forms: [(coding: String, bytes: [UInt8])] = {
        let secret = Array(text.utf8)
        func percent(_ isUpper: Bool, _ isForm: Bool) -> [UInt8] {
            secret.flatMap { byte -> [UInt8] in
                if isForm, byte == 0x20 { return [0x2B] }
                let isPlain =
                    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                if isPlain { return [byte] }
                let digits = String(byte, radix: 16, uppercase: isUpper)
                return Array("%\(digits)".utf8)
            }
        }
        func hexadecimal(_ isUpper: Bool) -> [UInt8] {
            secret.flatMap { Array((($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: isUpper)).utf8) }
        }
        var forms: [(String, [UInt8])] = [
            ("itself", secret), ("JSON", Array("Zq7/x+ w&\\\"k%9=vJ".utf8)), ("percent", percent(true, false)),
            ("percent", percent(false, false)),
            ("form", percent(true, true)), ("form", percent(false, true)), ("hexadecimal", hexadecimal(true)),
            ("hexadecimal", hexadecimal(false)),
        ]
        for alphabet in [Base64.Alphabet.standard, .url] {
            for before in 0..<3 {
                // The digits that depend on nothing but the secret.
                let written = Array(Base64.encode(Array(repeating: 0x61, count: before) + secret, alphabet).utf8)
                let bits = (before + secret.count) * 8
                forms.append(("base64", Array(written[((before * 8 + 5) / 6)..<(bits / 6)])))
            }
        }
        return forms
    }()

    /// Returns the coding in which `bytes` contain the secret; `nil` if they do not.
    static func coding(in bytes: [UInt8]) -> String? {
        forms.first { holds(bytes, $0.bytes) }?.coding
    }

    private static func holds(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        guard bytes.count >= part.count else { return false }
        for start in 0...(bytes.count - part.count) where bytes[start] == part[0] {
            var index = 1
            while index < part.count, bytes[start + index] == part[index] { index += 1 }
            if index == part.count { return true }
        }
        return false
    }
}
