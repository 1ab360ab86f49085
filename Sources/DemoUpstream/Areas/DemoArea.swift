// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
internal import Crypto
internal import Synchronization

/// Resources below a path, with or without a login.
protocol DemoArea: Sendable {
    /// Prefix of the area's paths.
    var path: String { get }

    /// Answers a request below `path`; `inside` serves the protected resource.
    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse
}

/// Area without protection.
struct OpenArea: DemoArea {
    let path = "/open/"

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse { inside(request) }
}

/// Area protected by HTTP Basic (RFC 7617): realm Demo, user ann, password demo.
struct BasicArea: DemoArea {
    let path = "/basic/"
    let tell: DemoTeller

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        if let given = request.basicCredentials {
            if given == ("ann", "demo") { return inside(request) }
            tell(.answerRejected(check: "basic"))
        } else {
            tell(.unauthorized(path: request.path, challenge: "Basic"))
        }
        return .unauthorized("Basic realm=\"Demo\", charset=\"UTF-8\"")
    }
}

/// Area protected by HTTP Digest (RFC 7616) with SHA-256: realm Demo, user ann, password demo.
///
/// Each nonce count is accepted once.
final class DigestArea: DemoArea {
    let path = "/digest/"
    private let tell: DemoTeller
    /// Nonce counts that were used, by nonce.
    private let nonces = Mutex<[String: Set<String>]>([:])

    init(tell: @escaping DemoTeller) { self.tell = tell }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        guard let written = request.authorization("Digest") else {
            tell(.unauthorized(path: request.path, challenge: "Digest"))
            return challenge(isStale: false)
        }
        // The field has the grammar of a challenge (RFC 9110 §11.4).
        guard let answer = ChallengeList(["Digest \(written)"]).challenges.first,
            answer["username"] == "ann", answer["realm"] == "Demo", answer["uri"] == request.target,
            let nonce = answer["nonce"], let count = answer["nc"],
            answer["response"] == proof(answer, nonce, count, method: request.method)
        else {
            tell(.answerRejected(check: "digest"))
            return challenge(isStale: false)
        }
        let isFresh = nonces.withLock { $0[nonce]?.insert(count).inserted ?? false }
        return isFresh ? inside(request) : challenge(isStale: true)
    }

    /// Returns the response of RFC 7616 §3.4.1, with the protection `auth`.
    private func proof(
        _ answer: AuthenticationChallenge, _ nonce: String, _ count: String, method: String
    ) -> String {
        let key = Samples.sha256("ann:Demo:demo".utf8)
        let request = Samples.sha256("\(method):\(answer["uri"] ?? "")".utf8)
        return Samples.sha256("\(key):\(nonce):\(count):\(answer["cnonce"] ?? ""):auth:\(request)".utf8)
    }

    private func challenge(isStale: Bool) -> DemoResponse {
        let nonce = Samples.randomName()
        nonces.withLock { nonces in
            // Enough for a demonstration.
            if nonces.count > 10_000 { nonces.removeAll() }
            nonces[nonce] = []
        }
        return .unauthorized(
            "Digest realm=\"Demo\", qop=\"auth\", nonce=\"\(nonce)\", algorithm=SHA-256\(isStale ? ", stale=true" : "")"
        )
    }
}

/// Resources of the areas.
enum Samples {
    /// Returns the received request without secrets: method, path, query, fields, size and digest of the body.
    static func echo(_ request: DemoRequest) -> DemoResponse {
        let fields = request.fields.map { field -> JSONValue in
            let isSecret = ["authorization", "cookie"].contains(field.name.lowercased())
            return [field.name: .string(isSecret ? "<present>" : field.value)]
        }
        return .json(
            200,
            [
                "method": .string(request.method), "path": .string(request.path), "query": .string(request.query),
                "fields": .array(fields), "size": .integer(Int64(request.body.count)),
                "sha256": .string(sha256(request.body)),
            ])
    }

    /// Returns server-sent events: a number of `lines`, `pause` milliseconds apart.
    static func stream(_ request: DemoRequest) -> DemoResponse {
        func number(_ name: String, default value: Int, atMost limit: Int) -> Int {
            min(max(request.queryValue(name).flatMap { Int($0) } ?? value, 1), limit)
        }
        return DemoResponse(
            200, fields: [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")],
            body: .ticks(
                count: number("lines", default: 5, atMost: 1_000_000),
                pause: number("pause", default: 200, atMost: 60_000)))
    }

    /// Returns the SHA-256 digest in hexadecimal digits.
    static func sha256(_ bytes: some Collection<UInt8>) -> String { Hex.encode(SHA256.hash(data: Array(bytes))) }

    /// Returns an unpredictable name.
    static func randomName() -> String {
        var generator = SystemRandomNumberGenerator()
        return Hex.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}
