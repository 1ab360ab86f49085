// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Testing

@Suite("Redirects and cookies of a real server")
struct RedirectTests {
    /// What nginx writes into `Location` by itself is an absolute address, made of the Host that it was sent.
    private static let locations = """
        location = /app/enter {
            add_header Set-Cookie "sid=s1; Domain=localhost; Path=/app; Secure; HttpOnly; SameSite=None" always;
            add_header Set-Cookie "__Host-id=h1; Path=/; Secure" always;
            return 302 /app/deep/home?x[]=1;
        }
        location = /app/deep/home { default_type text/plain; return 200 "$http_cookie at $request_uri"; }
        location = /app/folder { return 301 /app/deep/home#part; }
        location = /app/out { return 302 /other; }
        location = /app/host { default_type text/plain; return 200 "$http_host $http_x_forwarded_for"; }
        """

    private static func configuration(tlsPort: UInt16, certificate: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            upstream: front
            routes:
              - { path: /told/, upstream: told, strip-prefix: true }
            """
        for (name, more) in [("front", ""), ("told", "\n  host: pass\n  forwarded: x-forwarded")] {
            configuration.upstreams.append(
                "\(name):\n  url: https://localhost:\(tlsPort)/app/\n  tls: { ca: \(certificate) }\(more)")
        }
        return configuration
    }

    @Test("curl follows redirects with its cookie jar and never leaves the proxy")
    func following() async throws {
        try await withBank(startsDaemon: false) { bank in
            let front = try await TLSFront(before: bank.upstream.port, locations: Self.locations)
            bank.configure { $0 = Self.configuration(tlsPort: front.port, certificate: front.certificate) }
            try await bank.startDaemon()

            // A name that curl takes for no secure one, unlike localhost.
            let local = "http://bank.localhost:\(bank.port)"
            let jar = bank.folder.path(of: "jar")
            let follow = ["-g", "-L", "--max-redirs", "3", "-b", jar, "-c", jar]
            for prefix in ["", "/told"] {
                let entered = try await Curl.run(follow + ["\(local)\(prefix)/enter"], in: bank.folder)
                #expect(entered.status == 200, "\(entered.summary)")
                #expect(entered.text.hasSuffix(" at /app/deep/home?x[]=1"))
                for cookie in ["sid=s1", "__Host-id=h1"] { #expect(entered.text.contains(cookie), "\(entered.text)") }
                let redirect = try await Curl.run(["-g", "\(local)\(prefix)/folder"], in: bank.folder)
                #expect(redirect.field("location") == "\(local)\(prefix)/deep/home#part")
            }
            let kept = bank.folder.text(of: "jar")
            #expect(kept.contains("bank.localhost\tFALSE\t/\tFALSE\t0\tsid\ts1"), "\(kept)")
            #expect(kept.contains("bank.localhost\tFALSE\t/told\tFALSE\t0\tsid\ts1"), "\(kept)")
            #expect(kept.contains("countersign-__Host-id\th1"), "\(kept)")

            // Outside of what is served here: told as it is.
            let out = try await Curl.run(["\(local)/out"], in: bank.folder)
            #expect(out.field("location") == "https://localhost:\(front.port)/other")
            let told = try await Curl.run(["\(local)/told/host"], in: bank.folder)
            #expect(told.text == "bank.localhost:\(bank.port) 127.0.0.1")
            let untold = try await Curl.run(["\(local)/host"], in: bank.folder)
            #expect(untold.text == "localhost:\(front.port) ")

            #expect(front.requests.count == 9)
            #expect(front.requests.allSatisfy { $0.hasSuffix(" 1.1 countersign") }, "\(front.requests)")
            await bank.stopDaemon()
            await front.stop()
        }
    }
}
