// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets

@testable import ChallengeHandling

/// Reads a server's messages about access. The first byte chooses the kind: `w` fields of `WWW-Authenticate`, one a
/// line; `p` the JSON of a preauthorization; `t` that of a token; `s` a scope, or a path of a container registry; `a` a
/// field `Accept-Signature`.
func fuzzChallenges(_ input: Span<UInt8>) throws(Violation) {
    guard input.count > 0 else { return }
    let rest = input.extracting(1..<input.count)
    switch input[0] {
    case UInt8(ascii: "w"): try checkFields(rest.string)
    case UInt8(ascii: "p"): try checkVerdict(rest.array)
    case UInt8(ascii: "t"): try checkToken(rest.array)
    case UInt8(ascii: "s"): try checkScope(rest.string)
    case UInt8(ascii: "a"): try checkSignatures(rest.array)
    default: break
    }
}

private func checkFields(_ text: String) throws(Violation) {
    let values = text.split(separator: "\n", maxSplits: 7).map(String.init)
    var fields = HTTPFields()
    for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
    for status in [200, 401, 403, 409] { try checkResource(status, fields) }
    let list = ChallengeList(values)
    let challenges = list.challenges
    for part in list.unread {
        try require(
            values.indices.contains(part.field - 1) && part.offset < values[part.field - 1].utf8.count,
            "beyond: \(part)")
    }
    let bare = values.map { withoutQuoted($0).lowercased() }.joined(separator: "\n")
    try require(
        list.challenges(of: "Basic").isEmpty || bare.contains("basic"), "a quoted text becomes Basic: \(challenges)")
    for challenge in challenges {
        try require(Oracle.isToken(Array(challenge.scheme.utf8)), "the scheme \(challenge.scheme)")
        let names = challenge.parameters.map(\.name)
        try require(Set(names).count == names.count, "a parameter twice: \(names)")
        for parameter in challenge.parameters {
            try require(parameter.name == parameter.name.lowercased(), "a name in capitals: \(parameter.name)")
            try require(challenge[parameter.name.uppercased()] == parameter.value, "not found: \(parameter.name)")
        }
    }
    try checkDigest(challenges)
    // Written in the plainest way, in one field, they are the same challenges.
    let written = challenges.map(plain).joined(separator: ", ")
    let again = ChallengeList([written])
    try require(
        again.challenges == challenges && again.unread.isEmpty, "\(written) is read as \(again), not \(challenges)")
}

/// Returns a field without its quoted strings (RFC 9110 §5.6.4).
private func withoutQuoted(_ text: String) -> String {
    var bare: [UInt8] = []
    var (isQuoted, isEscaped) = (false, false)
    for byte in text.utf8 {
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\"") {
            isQuoted.toggle()
        } else if !isQuoted {
            bare.append(byte)
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        }
    }
    return String(decoding: bare, as: UTF8.self)
}

/// Checks that an answer to a Digest challenge contains every parameter that must come back unchanged.
private func checkDigest(_ challenges: [AuthenticationChallenge]) throws(Violation) {
    let credential = Credential(name: "c", fields: ["username": Secret(#"a"\b"#), "password": Secret("p")])
    guard let challenge = DigestChallenge.strongest(of: challenges),
        let pair = try? NameAndPassword(credential, challenge: "c")
    else { return }
    let url = WebURL(origin: Origin(scheme: .https, host: "h"), path: "/")
    let signer = DigestSigner(challenge, at: url, for: pair, name: "c", digests: OneDigest())
    guard let field = try? signer.sign(SigningRequest(method: "GET", origin: url.origin, target: #"/?"\"#)).fields.first
    else {
        throw Violation(description: "no answer to \(challenge)")
    }
    let written = field.value.revealText()
    let read = ChallengeList([written])
    guard read.unread.isEmpty, read.challenges.count == 1, let answer = read.challenges.first else {
        throw Violation(description: "\(written) is no answer")
    }
    try require(
        answer["realm"] == challenge.realm && answer["nonce"] == challenge.nonce && answer["opaque"] == challenge.opaque
            && answer["algorithm"] == challenge.algorithmName && answer["uri"] == #"/?"\"#
            && answer["qop"] == challenge.protection?.rawValue && answer["response"] == "07",
        "\(written) is no answer to \(challenge)")
    try require(challenge.hashesUserName || answer["username"] == #"a"\b"#, "another user: \(written)")
    signer.learn(status: 200, fields: [:], target: "/")
}

/// Digests that are all the same.
struct OneDigest: MessageDigests {
    func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8] { [7] }
    func running(_ algorithm: DigestAlgorithm) -> any RunningDigest { Running(algorithm: algorithm) }
    func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8] { [7] }

    private final class Running: RunningDigest {
        let algorithm: DigestAlgorithm
        init(algorithm: DigestAlgorithm) { self.algorithm = algorithm }
        func update(_ bytes: ArraySlice<UInt8>) {}
        func finish() -> [UInt8] { [7] }
    }
}

private func plain(_ challenge: AuthenticationChallenge) -> String {
    let parameters = challenge.parameters.map { parameter in
        let quoted = parameter.value.unicodeScalars.map { #""\"#.unicodeScalars.contains($0) ? "\\\($0)" : "\($0)" }
        return "\(parameter.name)=\"\(quoted.joined())\""
    }
    let parts = [challenge.token68].compactMap(\.self) + parameters
    return parts.isEmpty ? challenge.scheme : "\(challenge.scheme) \(parts.joined(separator: ", "))"
}

private let page = WebURL(origin: Origin(scheme: .https, host: "u.example"), path: "/")

private func checkResource(_ status: Int, _ fields: HTTPFields) throws(Violation) {
    let response = ExaminedResponse(status: status, fields: fields, url: page)
    let detectors: [any ChallengeDetector] = [BearerDetector(), MobileFirstDetector(), RegistryDetector()]
    for (detector, hasSession) in detectors.flatMap({ [($0, false), ($0, true)] }) {
        switch detector.examine(response, hasSession: hasSession) {
        case .pass: break
        case .challenged(let words):
            let isLack = !words.isEmpty && !(detector is RegistryDetector)
            try require(status == 401 || isLack && status == 403, "a token is asked for by \(status)")
            try require(Scope(words).words == words, "scope words \(words)")
        case .needsBody, .refused, .replay, .stale:
            throw Violation(description: "no meaning of a token's challenge")
        }
    }
}

private func checkVerdict(_ body: [UInt8]) throws(Violation) {
    for (status, fields) in [(200, [:]), (401, [.wwwAuthenticate: "MFP-Challenge"]), (403, [:])] as [(Int, HTTPFields)]
    {
        let verdict = PreauthorizationVerdict(SideResponse(status: status, fields: fields, body: body))
        let summary = verdict.summary
        try require(summary.utf8.allSatisfy { $0 >= 32 && $0 < 127 }, "a summary with strange signs: \(summary)")
        switch verdict {
        case .challenged(let challenges, _):
            try require(status == 401 && !challenges.isEmpty, "challenged by \(status)")
        case .failed(let failures):
            try require(status == 403 && !failures.isEmpty, "failed by \(status)")
        case .passed:
            try require(status == 200, "passed by \(status)")
        case .unusable:
            break
        }
    }
}

private func checkToken(_ body: [UInt8]) throws(Violation) {
    let answer = TokenAnswer(body)
    if let token = try? answer.token(named: ["token", "access_token"], defaultSeconds: 60) {
        try require(TokenPlacement.canCarry(token.value.revealBytes()), "a token that splits the field")
        let end = token.expiresAt(sentAt: 1_700_000_000_000) ?? .max
        try require(end > 1_700_000_000_000, "it ended before it began")
    }
    if let error = answer.error { try require(error.utf8.allSatisfy { $0 > 32 && $0 < 127 }, "the word \(error)") }
    for (status, sent) in [(200, []), (400, [.assertion]), (401, [.refreshToken]), (503, [.password])]
        as [(Int, Set<TokenWord.Sent>)]
    {
        let response = SideResponse(status: status, fields: [.contentType: "text/plain"], body: body)
        let verdict = TokenVerdict(response, to: TokenQuestion(sent: sent), now: 1_700_000_000_000)
        if case .accepted(let token, _) = verdict {
            try require(status == 200, "accepted by \(status)")
            try require(TokenPlacement.canCarry(token.value.revealBytes()), "a token that splits the field")
        }
        // Of the server's text, only a word and the table's own phrases are told.
        try require(verdict.step.utf8.allSatisfy { $0 >= 32 && $0 < 127 }, "the step \(verdict.step)")
    }
}

private func checkScope(_ text: String) throws(Violation) {
    let canonical = RegistryScope.canonical(Scope(text: text).words)
    try require(RegistryScope.canonical(canonical) == canonical, "\(canonical) has another form")
    try require(Scope(canonical).words == canonical, "\(canonical) are no words of a scope")
    if let needed = RegistryScope.needed(method: "PUT", path: text), let word = needed.words.first {
        try require(needed.words.count == 1 && RegistryScope.canonical([word]) == [word], "\(needed) for \(text)")
    }
    let scope = Scope(text: text)
    try require(Scope(text: scope.description) == scope, "\(scope) is read otherwise")
    try require(scope.union(scope) == scope && scope.contains(scope), "\(scope) is not itself")
    for word in scope.words {
        try require(word.utf8.allSatisfy { $0 > 32 && $0 < 127 } && !word.isEmpty, "the word \(word)")
    }
}
