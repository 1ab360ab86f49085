// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Synchronization
internal import Testing

@Suite("Cookies of a session and of callers, at one server with two applications")
struct CookieOwnerTests {
    /// A shop beside the application that is logged in to: a cookie of the same name, under a path of its own.
    private final class Shop: Sendable {
        private let seen = Mutex<[String?]>([])

        func respond(_ request: FakeRequest) -> FakeResponse? {
            guard request.path.hasPrefix("/shop/") else { return nil }
            let number = seen.withLock { seen in
                seen.append(request.cookie("JSESSIONID"))
                return seen.count
            }
            return .text(200, "shop", fields: [("Set-Cookie", "JSESSIONID=SHOP\(number); Path=/shop")])
        }

        var sessions: [String?] { seen.withLock { $0 } }
    }

    private static func configuration(_ more: String = "") -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.workers = 2
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = [
            "name: page\nat: \"http://127.0.0.1:${UPSTREAM_PORT}/*\"\ngateway: j-security-check\ncredential: ann\n"
                + "prove-at: /form/\n\(more)"
        ]
        configuration.mobileFirst = []
        configuration.environment = ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "demo"]
        return configuration
    }

    @Test("the other application's cookie is each caller's own, and the session's serves where it was set for")
    func otherApplication() async throws {
        try await withBank(Self.configuration()) { bank in
            let shop = Shop()
            bank.upstream.override(shop.respond)
            try await bank.expect("/form/a", status: 200)
            let first = try await bank.expect("/shop/", status: 200)
            #expect(first.field("set-cookie") == "JSESSIONID=SHOP1; Path=/shop")
            try await bank.expect("/shop/", status: 200)
            try await bank.expect("/shop/", "-b", "JSESSIONID=SHOP1", status: 200)
            #expect(shop.sessions == [nil, nil, "SHOP1"])
            let page = try await bank.expect("/form/b", "-b", "JSESSIONID=SHOP1", status: 200)
            #expect(page.field("set-cookie") == nil)
            #expect(bank.record.logins["form"] == 1)
        }
    }

    @Test("a login whose only cookie is given to callers by the configuration wins no session, and says why")
    func allPassed() async throws {
        try await withBank(Self.configuration("cookies: { pass: [JSESSIONID] }")) { bank in
            let answer = try await bank.expect("/form/a", status: 502, code: "login-failed")
            #expect(answer.json?["detail"]?.string?.contains("cookies.pass") == true, "\(answer.summary)")
        }
    }
}

@Suite("Redirects and cookies of a real server")
struct RedirectTests {
    /// nginx writes absolute addresses into `Location`, made of the Host that it received.
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

            // An address outside of those served here is passed on unchanged.
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
