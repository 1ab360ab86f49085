// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto
internal import Synchronization

/// An area with HTTP Digest (RFC 7616), whose nonces it remembers and whose counts must never repeat.
package final class DigestArea: Sendable {
    private let recorder: Recorder
    private let state = Mutex(State())

    /// The area's behaviour; a test may change it.
    package struct Rules: Sendable {
        /// The protection space.
        package var realm = "Demo"
        /// The user.
        package var user = "ann"
        /// The password.
        package var password = "demo"
        /// The algorithms offered, one challenge each: MD5, SHA-256, and these with `-sess`.
        package var algorithms = ["SHA-256", "MD5"]
        /// The protection offered; `nil` is a server of RFC 2069.
        package var protection: String? = "auth"
        /// True if the user name must be hashed.
        package var hashesUserName = false
        /// After how many requests a nonce is stale; `nil` is never.
        package var nonceUses: Int?
        /// True if each accepted answer brings the next nonce.
        package var givesNextNonce = false
        /// True if a stale nonce is reported as `stale`.
        package var saysStale = true

        /// SHA-256 and MD5, and nonces that last.
        package init() {}
    }

    fileprivate struct State {
        var rules = Rules()
        /// The counts that came, by nonce.
        var nonces: [String: Set<String>] = [:]
    }

    /// Creates an area that records events in `recorder`.
    package init(recorder: Recorder) { self.recorder = recorder }

    /// Changes the rules; nonces stay.
    package func configure(_ change: (inout Rules) -> Void) {
        state.withLock { change(&$0.rules) }
    }

    /// Forgets every nonce, as a restart of the server does.
    package func forgetNonces() {
        state.withLock { $0.nonces.removeAll() }
    }

    /// Passes a request with a right answer on to the protected resource.
    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        guard let written = request.authorization("Digest") else {
            recorder.note { $0.challenges["digest", default: 0] += 1 }
            return state.withLock { $0.challenge(isStale: false) }
        }
        let answer = DigestAnswer(parsing: written)
        let (verdict, response) = state.withLock { state in
            let verdict = state.judge(answer, of: request)
            switch verdict {
            case .right: return (verdict, nil as FakeResponse?)
            case .stale: return (verdict, state.challenge(isStale: state.rules.saysStale))
            case .broken, .wrong: return (verdict, state.challenge(isStale: false))
            }
        }
        note(verdict, answer)
        if let response { return response }
        var served = inside(request)
        served.fields.append(("Authentication-Info", state.withLock { $0.info(for: answer, of: request) }))
        return served
    }

    private func note(_ verdict: DigestVerdict, _ answer: DigestAnswer) {
        recorder.note { record in
            record.answers["digest", default: []].append(["user": .string(answer["username"] ?? "")])
            switch verdict {
            case .broken(let reason): record.violations.append("Digest: \(reason)")
            case .right: record.logins["digest", default: 0] += 1
            case .stale: record.challenges["digest, stale", default: 0] += 1
            case .wrong: record.wrongAnswers["digest", default: 0] += 1
            }
        }
    }
}

/// The area's verdict on an answer.
private enum DigestVerdict: Equatable {
    case broken(String)
    case right
    case stale
    case wrong
}

extension DigestArea.State {
    fileprivate mutating func challenge(isStale: Bool) -> FakeResponse {
        let nonce = fresh()
        let fields = rules.algorithms.map { algorithm in
            (
                "WWW-Authenticate",
                """
                Digest realm="\(rules.realm)"\(rules.protection.map { ", qop=\"\($0)\"" } ?? ""), nonce="\(nonce)", \
                opaque="5ccc069c", algorithm=\(algorithm)\(isStale ? ", stale=true" : "")\
                \(rules.hashesUserName ? ", userhash=true" : ""), charset=UTF-8
                """
            )
        }
        return .text(401, "Please say who you are.\n", fields: fields)
    }

    private mutating func fresh() -> String {
        let nonce = randomName()
        nonces[nonce] = []
        return nonce
    }

    /// RFC 7616 §3.4.6: first whether the answer is right, then whether its nonce still serves.
    fileprivate mutating func judge(_ answer: DigestAnswer, of request: FakeRequest) -> DigestVerdict {
        if let breach = answer.breach { return .broken(breach) }
        guard answer["uri"] == request.target else { return .broken("uri is not that of the request") }
        guard answer["opaque"] == "5ccc069c" else { return .broken("opaque did not come back") }
        guard let algorithm = answer["algorithm"], algorithm == rules.algorithms.first else {
            return .broken("not the first algorithm, which is the strongest")
        }
        let name = rules.hashesUserName ? answer.hash("\(rules.user):\(rules.realm)") : rules.user
        guard (answer["userhash"] == "true") == rules.hashesUserName else {
            return .broken("userhash is not as asked for")
        }
        guard answer["username"] == name, answer["realm"] == rules.realm,
            answer["response"] == answer.proof(rules, method: request.method, body: request.body)
        else { return .wrong }
        guard rules.protection != nil else { return .right }
        guard let nonce = answer["nonce"], let count = answer["nc"], var counts = nonces[nonce] else { return .stale }
        guard counts.insert(count).inserted else { return .broken("the count \(count) came twice") }
        nonces[nonce] = counts
        return counts.count > rules.nonceUses ?? .max ? .stale : .right
    }

    fileprivate mutating func info(for answer: DigestAnswer, of request: FakeRequest) -> String {
        var parts: [String] = []
        if rules.protection != nil {
            parts = [
                "rspauth=\"\(answer.proof(rules, method: "", body: []))\"", "cnonce=\"\(answer["cnonce"] ?? "")\"",
                "nc=\(answer["nc"] ?? "")", "qop=\(answer["qop"] ?? "")",
            ]
        }
        if rules.givesNextNonce { parts.append("nextnonce=\"\(fresh())\"") }
        return parts.joined(separator: ", ")
    }
}

/// The value of `Authorization: Digest`, as a server takes it apart (RFC 7616 §3.4).
struct DigestAnswer {
    /// The violation of RFC 7616 §3.4 in this answer; `nil` if there is none.
    let breach: String?
    private var values: [String: String] = [:]

    init(parsing text: String) {
        var values: [String: String] = [:]
        var breach: String?
        var rest = text[...]
        while !rest.isEmpty {
            rest = rest.drop { $0 == " " || $0 == "," }
            guard let equals = rest.firstIndex(of: "=") else { break }
            let name = String(rest[..<equals])
            rest = rest[rest.index(after: equals)...]
            let isQuoted = rest.first == "\""
            var value = ""
            if isQuoted {
                rest.removeFirst()
                while let sign = rest.popFirst(), sign != "\"" {
                    value.append(sign == "\\" ? rest.popFirst() ?? sign : sign)
                }
            } else {
                value = String(rest.prefix { $0 != "," })
                rest = rest.dropFirst(value.count)
            }
            if values[name] != nil { breach = "\(name) came twice" }
            if isQuoted == ["algorithm", "nc", "qop", "userhash", "username*"].contains(name) {
                breach = "\(name) is \(isQuoted ? "quoted" : "not quoted")"
            }
            values[name] = value
        }
        self.breach = breach
        self.values = values
    }

    subscript(name: String) -> String? { values[name] }

    /// Returns the proof that a right answer holds; with an empty method, that of the server's own.
    func proof(_ rules: DigestArea.Rules, method: String, body: [UInt8]) -> String {
        let nonce = self["nonce"] ?? ""
        var key = hash("\(rules.user):\(rules.realm):\(rules.password)")
        if self["algorithm"]?.hasSuffix("-sess") == true { key = hash("\(key):\(nonce):\(self["cnonce"] ?? "")") }
        var request = "\(method):\(self["uri"] ?? "")"
        guard let protection = rules.protection else { return hash("\(key):\(nonce):\(hash(request))") }
        if protection == "auth-int" { request += ":\(hash(body))" }
        return hash("\(key):\(nonce):\(self["nc"] ?? ""):\(self["cnonce"] ?? ""):\(protection):\(hash(request))")
    }

    /// Returns the hash by the answer's algorithm, in hexadecimal digits.
    func hash(_ text: String) -> String { hash(Array(text.utf8)) }

    private func hash(_ bytes: [UInt8]) -> String {
        guard self["algorithm"]?.hasPrefix("MD5") == true else { return sha256(bytes) }
        return Insecure.MD5.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
