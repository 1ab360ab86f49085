// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A MobileFirst server behind TLS")
struct TLSLoginTests {
    /// The bank at `https`, with these lines of `tls` and this `http`; `$CERTIFICATE` and `$PIN` are the front's.
    private func withTLS(
        host: String = "127.0.0.1", _ tls: String, http: String = "auto", _ scenario: (Bank) async throws -> Void
    ) async throws {
        try await withBank(startsDaemon: false) { bank in
            let front = try await TLSFront(before: bank.upstream.port)
            let lines = tls.replacing("$CERTIFICATE", with: front.certificate).replacing("$PIN", with: front.pin)
            let server = "https://\(host):\(front.port)"
            bank.configure {
                $0.upstreams = [
                    """
                    secure:
                      url: \(server)/mfp/api/adapters/bank/
                      http: \(http)
                      tls: \(lines)
                      mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
                    """
                ]
                $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: secure"
                $0.challenges = [BankConfiguration.pinChallenge.replacing("upstream: bank", with: "upstream: secure")]
            }
            do {
                try await bank.startDaemon()
                try await scenario(bank)
            } catch {
                await front.stop()
                throw error
            }
            await front.stop()
        }
    }

    @Test(
        "is logged in to and served, over the version of HTTP that was asked for",
        arguments: [
            ("auto", "HTTP/2.0"), ("1.1", "HTTP/1.1"), ("2", "HTTP/2.0"),
        ])
    func served(version: String, expected: String) async throws {
        try await withTLS("{ ca: $CERTIFICATE }", http: version) { bank in
            let answer = try await bank.expect("/balance", status: 200)
            #expect(answer.field("x-protocol") == expected)
            let body = pattern(200_000)
            let file = bank.folder.write(body, to: "body")
            try await bank.expect("/transfer", "-d", "{}", status: 201)
            let receipt = try await bank.expect("/transfer", "--data-binary", "@\(file)", status: 201)
            #expect(receipt.json?["sha256"]?.string == sha256(body))
            let large = try await bank.expect("/bytes?count=3000000", status: 200)
            #expect(large.body.count == 3_000_000)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("gets no secret, and the caller is told, where the certificate is not trusted")
    func untrusted() async throws {
        try await withTLS("{}") { bank in
            let answer = try await bank.expect("/balance", status: 502, code: "upstream-tls")
            #expect(answer.field("proxy-status")?.contains("tls") == true)
            #expect(bank.record.transcript.isEmpty)
        }
    }

    @Test("is served by the right pin, and not by another")
    func pins() async throws {
        try await withTLS("{ ca: $CERTIFICATE, pin: $PIN }") { bank in
            try await bank.expect("/balance", status: 200)
        }
        let other = "sha256//" + String(repeating: "A", count: 43) + "="
        try await withTLS("{ ca: $CERTIFICATE, pin: \"\(other)\" }") { bank in
            try await bank.expect("/balance", status: 502, code: "upstream-tls")
            #expect(bank.record.transcript.isEmpty)
        }
    }

    @Test("gets no secret where its certificate is for another name")
    func otherName() async throws {
        try await withTLS(host: "127.0.0.2", "{ ca: $CERTIFICATE }") { bank in
            try await bank.expect("/balance", status: 502, code: "upstream-tls")
            #expect(bank.record.transcript.isEmpty)
        }
    }
}
