// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Requests that are signed for AWS by the temporary key of a role.
final class SignedProtection: Protection {
    let account: Account
    let needsBody = true
    let isTriedByHand = false
    private let port: Int
    /// The token of each temporary key.
    private var keys: [String: String] = [:]
    private var last = 0
    /// The time until which the server's clock is wrong, in ms since 1970.
    private var isLateUntil: Int64 = 0

    init(_ account: Account, port: Int) {
        self.account = account
        self.port = port
    }

    var configuration: [String] {
        let role = "{ url: \"http://127.0.0.1:\(port)/sts\", role: \"arn:aws:iam::1:role/r\", with: access-key }"
        return ["sign: { aws: { region: eu-west-1, service: s3, payload: unsigned, assume-role: \(role) } }"]
    }

    func fields(of value: String) -> [String: String] {
        ["access-key-id": value, "secret-access-key": "\(Simulation.secretMark)key"]
    }

    private func key(of request: ServerRequest) -> String? {
        request.value("authorization")?.components(between: "Credential=", and: "/")
    }

    func examine(_ request: ServerRequest) -> Examination {
        if let key = key(of: request), let token = keys[key], request.value("x-amz-security-token") == token {
            return .pass(nil)
        }
        return .demand(fault("ExpiredToken", "The provided token has expired."))
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path == "/sts" else { return nil }
        let simulation = account.simulation
        guard request.method == "POST", request.isSide else {
            simulation.violated("rule 11: a key was not asked for by a login")
            return ServerAnswer(405)
        }
        if simulation.isFault(6) { isLateUntil = simulation.now + 2_000 }
        if simulation.isStormy, simulation.now < isLateUntil {
            return fault("SignatureDoesNotMatch", "Signature expired: it is now earlier than the service's time")
        }
        let attempt = account.judge(key(of: request) ?? "", sentAt: request.sentAt)
        guard attempt.isRight else {
            return fault("InvalidClientTokenId", "The security token is invalid.").judging(attempt)
        }
        last += 1
        let mark = Simulation.secretMark
        let (key, token) = ("ASIA\(mark)\(account.name)n\(last)", "\(mark)session\(account.name)n\(last)")
        keys[key] = token
        return ServerAnswer(
            200, [("Content-Type", "text/xml")],
            body: "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>\(key)</AccessKeyId>"
                + "<SecretAccessKey>\(mark)temporary</SecretAccessKey><SessionToken>\(token)</SessionToken>"
                + "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
        ).judging(attempt)
    }

    func refusal() -> ServerAnswer { fault("AccessDenied", "Access Denied") }

    private func fault(_ code: String, _ message: String) -> ServerAnswer {
        ServerAnswer(
            403, [("Content-Type", "application/xml")],
            body: "<Error><Code>\(code)</Code><Message>\(message)</Message></Error>")
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 403 }

    func endSessions() {
        account.ends += 1
        keys = [:]
    }
}
