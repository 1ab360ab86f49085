// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// An area behind HTTP Digest (RFC 7616) with SHA-256: realm Demo, user ann, password demo. No count comes twice.
final class DigestArea: DemoArea {
    let path = "/digest/"
    private let tell: DemoTeller
    /// The counts that came, by nonce.
    private let nonces = Mutex<[String: Set<String>]>([:])

    init(tell: @escaping DemoTeller) { self.tell = tell }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        guard let written = request.authorization("Digest") else {
            tell(.unauthorized(path: request.path, challenge: "Digest"))
            return challenge(isStale: false)
        }
        // The grammar is that of a challenge (RFC 9110 §11.4).
        guard let answer = try? AuthenticationChallenge.parse(["Digest \(written)"]).first,
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

    /// RFC 7616 §3.4.1, with the protection `auth`.
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
            // A demonstration need not hold more.
            if nonces.count > 10_000 { nonces.removeAll() }
            nonces[nonce] = []
        }
        return .unauthorized(
            "Digest realm=\"Demo\", qop=\"auth\", nonce=\"\(nonce)\", algorithm=SHA-256\(isStale ? ", stale=true" : "")"
        )
    }
}
