// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

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
