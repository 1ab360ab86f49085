// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("What fails")
struct FailureListTests {
    @Test(
        "each failure of the list is told with its cause and its remedy, and nothing internal", .timeLimit(.minutes(10))
    )
    func failures() async throws {
        async let upstreams = UpstreamFailures.answers()
        async let logins = LoginFailures.answers()
        async let local = LocalFailures.answers()
        let answers = try await [upstreams, logins, local].reduce(into: [String: Curl]()) { $0.merge($1) { $1 } }
        #expect(Set(answers.keys) == Set(Failure.all.map(\.name)))
        #expect(Failure.all.count >= 30)
        for failure in Failure.all {
            guard let answer = answers[failure.name] else { continue }
            expect(failure, in: answer)
        }
    }

    @Test("each cause of the list stands in docs/troubleshooting.md, below its code")
    func documented() {
        let page = Repository.text(of: "docs/troubleshooting.md")
        for failure in Failure.all {
            let section = page.split(separator: "\n### `\(failure.code)`\n").dropFirst().first?
                .split(separator: "\n##").first
            let words = section?.split { $0 == " " || $0 == "\n" }.joined(separator: " ") ?? ""
            // The variable part follows one of these characters.
            let cause = failure.cause.prefix { !"\"(:".contains($0) }
            #expect(words.contains(cause.trimmed), "\(failure.name): \(cause)")
        }
    }

    private func expect(_ failure: Failure, in answer: Curl) {
        let told = "\(failure.name): \(answer.summary)"
        #expect(answer.status == failure.status && answer.code == failure.code, "\(told)")
        #expect(answer.json?["status"] == .integer(Int64(failure.status)), "\(told)")
        #expect(answer.json?["type"]?.string == "urn:countersign:problem:\(failure.code)", "\(told)")
        let id = answer.json?["exchange_id"]?.string ?? ""
        #expect(id.wholeMatch(of: #/[0-9a-f]{8}-\d+-\d+/#) != nil, "\(told)")
        #expect(answer.json?["title"]?.string?.isEmpty == false, "\(told)")
        #expect(answer.detail.contains(failure.cause), "\(told)")
        #expect(answer.detail.contains(failure.remedy), "\(told)")
        let isSentence = answer.detail.first?.isUppercase == true && [".", "`"].contains(answer.detail.last)
        #expect(isSentence && !answer.detail.contains(".."), "\(told)")
        let proxyStatus = answer.field("proxy-status") ?? ""
        #expect(proxyStatus.hasPrefix("countersign; error=\(failure.error); "), "\(told) \(proxyStatus)")
        #expect(proxyStatus.hasSuffix("; exchange_id=\"\(id)\""), "\(told) \(proxyStatus)")
        // Neither addresses nor files nor values; that of the listener the caller knows.
        let detail = answer.detail.replacing(#/[Ll]istener 127\.0\.0\.1:\d+/#, with: "")
        for internals in ["127.0.0.1", "localhost", "224.0.0.1", "invalid/", "/tmp", "SSL", "error:", "s3cr3t"] {
            #expect(!detail.contains(internals), "\(told)")
        }
    }
}

extension Substring {
    /// Without the space at its end.
    fileprivate var trimmed: Substring { last == " " ? dropLast() : self }
}

/// A failure as the caller sees it.
struct Failure: Sendable {
    /// Its name in the list.
    let name: String
    /// The status of the reply.
    let status: Int
    /// The `code` of its document.
    let code: String
    /// The error type of RFC 9209 §2.3.
    let error: String
    /// Words of the `detail` about the cause.
    let cause: String
    /// Words of the `detail` about the remedy.
    let remedy: String

    init(_ name: String, _ status: Int, _ code: String, _ error: String, _ cause: String, _ remedy: String) {
        self.name = name
        self.status = status
        self.code = code
        self.error = error
        self.cause = cause
        self.remedy = remedy
    }

    /// The list: each failure that `FailureListTests` brings about.
    static let all: [Failure] = connections + handshakes + answers + logins + credentials + local

    private static let connections = [
        Failure("dns", 502, "upstream-unreachable", "dns_error", "name cannot be resolved", "Check the host"),
        Failure(
            "refused", 502, "upstream-unreachable", "connection_refused", "refuses the connection", "Check that it runs"
        ),
        Failure(
            "unreachable", 502, "upstream-unreachable", "destination_ip_unroutable", "no route to its address",
            "Check that it runs, and host and port"),
        Failure(
            "connect-timeout", 504, "upstream-timeout", "connection_timeout", "no connection was established in time",
            "timeouts.connect"),
        Failure(
            "tls-timeout", 504, "upstream-timeout", "connection_timeout", "its TLS handshake did not finish in time",
            "timeouts.connect"),
    ]

    private static let handshakes = [
        ("tls-name", "tls_certificate_error", "for another name", "Use a name that the certificate has"),
        ("tls-expired", "tls_certificate_error", "has expired", "renewed"),
        ("tls-not-yet-valid", "tls_certificate_error", "not valid yet", "clock"),
        ("tls-unknown-authority", "tls_certificate_error", "an authority that is not trusted", "`tls.ca`"),
        ("tls-self-signed", "tls_certificate_error", "self-signed", "`tls.ca`"),
        ("tls-pin", "tls_certificate_error", "public key matches no pin", "set the new pin"),
        ("tls-version", "tls_protocol_error", "no version of TLS", "`tls.minimum`"),
        ("no-tls", "tls_protocol_error", "does not speak TLS", "Check the port"),
    ].map { Failure($0, 502, "upstream-tls", $1, $2, $3) }

    private static let answers = [
        Failure(
            "no-answer", 502, "upstream-unreachable", "connection_terminated",
            "closed the connection without an answer",
            "Check its log"),
        Failure(
            "cut-head", 502, "upstream-protocol", "http_protocol_error", "in the middle of its head",
            "Check its log"),
        Failure(
            "malformed-head", 502, "upstream-protocol", "http_protocol_error", "cannot be passed on: A field name",
            "has to be fixed there"),
        Failure(
            "response-timeout", 504, "upstream-timeout", "http_response_timeout", "no answer within its time limit",
            "raise the limit"),
        Failure(
            "body-not-replayable", 413, "body-not-replayable", "http_request_error", "asked for a login after",
            "Send the request again in a moment"),
    ]

    private static let logins = [
        ("wrong-password", 502, "login-rejected", "rejected the credential \"wrong\"", "countersign unlatch"),
        ("latched", 503, "login-latched", "so it is not sent again", "Change COUNTERSIGN_"),
        ("invalid-client", 502, "login-rejected", "rejected the credential \"client\"", "Change COUNTERSIGN_"),
        ("account-locked", 503, "account-locked", "is blocked at the server", "Wait until the server's block is over"),
        ("attempts-kept", 503, "attempts-kept", "1 attempt remains", "Check the credential"),
        ("token-endpoint-down", 502, "login-failed", "refuses the connection", "Check that it runs"),
        ("login-page-changed", 502, "login-failed", "no form", "`login.url`"),
        ("login-no-evidence", 502, "login-failed", "does not show whether the login worked", "`success`"),
        ("login-unavailable", 502, "login-failed", "with status 503", "A later request tries again"),
        ("login-timeout", 504, "login-timeout", "did not answer the form in time", "`login.timeout`"),
    ].map { Failure($0, $1, $2, "proxy_configuration_error", $3, $4) }

    private static let credentials = [
        ("no-credential", "no-credential", "No source knows the credential \"nobody\"", "set COUNTERSIGN_NOBODY__"),
        ("missing-field", "no-credential", "has no field \"password\"", "`countersign doctor` says how"),
        ("helper-fails", "login-failed", "it failed (exit code 3)", "Run it by hand"),
        ("helper-times-out", "login-failed", "took too long", "Run it by hand"),
        ("keyring-exposed", "login-failed", "others could read or change it", "mode 600"),
        ("keyring-passphrase", "login-failed", "its passphrase is wrong", "COUNTERSIGN_KEYRING_PASSPHRASE"),
    ].map { Failure($0, 502, $1, "proxy_configuration_error", $2, $3) }

    private static let local = [
        Failure("bad-host", 421, "host-not-allowed", "http_request_denied", "Only loopback names", "Add the name"),
        Failure(
            "cross-site", 403, "caller-not-allowed", "http_request_denied", "on behalf of a page of another origin",
            "`browsers`"),
        Failure(
            "user-not-allowed", 403, "caller-not-allowed", "http_request_denied", "for other users", "Add this user to"),
        Failure(
            "caller-credentials", 403, "caller-not-allowed", "http_request_denied", "no credentials of their own",
            "Leave Authorization out"),
        Failure("no-route", 404, "no-route", "destination_not_found", "No route", "Add a route to `routes`"),
        Failure("trace", 405, "method-not-allowed", "http_request_error", "TRACE", "Use another method"),
        Failure(
            "bad-request", 400, "bad-request", "http_request_error", "Both Content-Length and Transfer-Encoding",
            "Fix the program that sent"),
        Failure(
            "unknown-expectation", 417, "bad-request", "http_request_error", "Only `Expect: 100-continue`",
            "Leave the field out"),
        Failure(
            "overloaded", 503, "overloaded", "connection_limit_reached", "`limits.exchanges`", "Try again shortly"),
    ]
}

/// Requests that go no further than to the proxy.
enum LocalFailures {
    /// Returns the answer to each request, by its name in the list.
    static func answers() async throws -> [String: Curl] {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            routes:
              - { path: /open/, upstream: server }
              - { path: /others/, users: ["\(getuid() + 12_345)"], upstream: server }
              - { path: /strict/, upstream: strict }
            """
        configuration.upstreams = [
            "strict:\n  url: \"http://127.0.0.1:${UPSTREAM_PORT}/\"\n  caller-credentials: refuse"
        ]
        configuration.challenges = []
        configuration.more = ["limits: { exchanges: 1 }"]
        let requests = [
            "bad-host": ["-H", "Host: evil.example", "/open/x"],
            "cross-site": ["-H", "Origin: https://evil.example", "/open/x"],
            "user-not-allowed": ["/others/x"],
            "no-route": ["/elsewhere/x"],
            "trace": ["-X", "TRACE", "/open/x"],
            "caller-credentials": ["-u", "me:s3cr3t", "/strict/x"],
            "bad-request": ["-H", "Transfer-Encoding: chunked", "-H", "Content-Length: 2", "-d", "{}", "/open/x"],
            "unknown-expectation": ["-H", "Expect: 200-ok", "/open/x"],
            "overloaded": ["/open/x"],
        ]
        var answers: [String: Curl] = [:]
        try await withBank(configuration) { bank in
            for (name, arguments) in requests where name != "overloaded" {
                let path = arguments.last ?? "/"
                answers[name] = try await Curl.run(arguments.dropLast() + [bank.url(path)], in: bank.folder)
            }
            bank.upstream.override { _ in
                var response = FakeResponse(200)
                response.delivery.hangs = true
                return response
            }
            let other = try bank.connect()
            other.send("GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = await bank.upstream.recorder.waitUntil { $0.maxConcurrent["/open/x"] == 1 }
            answers["overloaded"] = try await bank.curl("/open/x")
            withExtendedLifetime(other) {}
        }
        return answers
    }
}
