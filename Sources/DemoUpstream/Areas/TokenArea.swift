// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// An OAuth 2 server and what its tokens open (RFC 6749, RFC 6750): `/oauth/token` for the client demo, and `/oauth/api/…`.
final class TokenArea: DemoArea {
    let path = "/oauth/"
    private let tell: DemoTeller
    private let now: DemoClock
    /// The ends of tokens, in milliseconds since 1970.
    private let tokens = Mutex<[String: Int64]>([:])
    /// The lifetime of one, in seconds.
    private static let life: Int64 = 300

    init(now: @escaping DemoClock, tell: @escaping DemoTeller) {
        self.now = now
        self.tell = tell
    }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        if request.path == "/oauth/token" { return token(request) }
        let given = request.authorization("Bearer")
        let end = given.flatMap { given in tokens.withLock { $0[given] } }
        if let end, now() < end { return inside(request) }
        let challenge = "Bearer realm=\"api\"\(given == nil ? "" : ", error=\"invalid_token\"")"
        tell(.unauthorized(path: request.path, challenge: challenge))
        return .unauthorized(challenge)
    }

    private func token(_ request: DemoRequest) -> DemoResponse {
        guard request.formValue("grant_type") == "client_credentials" else {
            return .json(400, ["error": "unsupported_grant_type"])
        }
        guard isClient(request) else {
            tell(.answerRejected(check: "oauth"))
            return .json(401, ["error": "invalid_client"], [("WWW-Authenticate", "Basic realm=\"oauth\"")])
        }
        tell(.answerAccepted(check: "oauth"))
        let token = "token-\(Samples.randomName())"
        let now = now()
        tokens.withLock { tokens in
            tokens = tokens.filter { now < $0.value }
            tokens[token] = now + Self.life * 1000
        }
        tell(.tokenIssued(scope: "read", seconds: Self.life))
        return .json(
            200,
            [
                "access_token": .string(token), "token_type": "bearer", "scope": "read",
                "expires_in": .integer(Self.life),
            ], [("Cache-Control", "no-store")])
    }

    /// By Basic, where name and secret stand as in a form, or in the body (RFC 6749 §2.3.1).
    private func isClient(_ request: DemoRequest) -> Bool {
        let basic = request.basicCredentials.map { pair in
            [pair.user, pair.password].map { FormEncoding.value(of: "value", in: "value=\($0)") }
        }
        return (basic ?? [request.formValue("client_id"), request.formValue("client_secret")])
            == ["demo", "demo:secret+%"]
    }
}
