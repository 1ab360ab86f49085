// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("FORM login of a real Tomcat")
struct TomcatFormTests {
    @Test("a caller without a credential is ann, and the second request costs no further round trip")
    func principal() async throws {
        try await withTomcat { tomcat in
            let first = try await tomcat.curl("/form/reports/7?year=2026")
            #expect(first.status == 200 && first.json?["principal"]?.string == "ann", "\(first.summary)")
            #expect(first.json?["target"]?.string == "/form/reports/7?year=2026")
            #expect(first.field("set-cookie") == nil)
            let second = try await tomcat.curl("/form/reports/8", "-H", "Cookie: mine=1")
            #expect(second.json?["principal"]?.string == "ann", "\(second.summary)")
            #expect(second.json?["cookies"]?.string == "JSESSIONID; mine")
            #expect(await tomcat.wasAsked(times: 1))
            #expect(await eventually { tomcat.requests.contains { $0.contains("/form/reports/8") } })
            #expect(tomcat.requests.count { $0.contains("/form/reports/8") } == 1)
        }
    }

    @Test("a POST on a cold session arrives once and as it was sent, of any length", arguments: [100, 3000, 500_000])
    func coldPost(_ length: Int) async throws {
        try await withTomcat { tomcat in
            let body = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            let file = tomcat.folder.write(body, to: "body")
            let sum = try await Command.run(["sha256sum", file], in: tomcat.folder).output.prefix(64)
            let answer = try await tomcat.curl(
                "/form/transfer", "--data-binary", "@\(file)", "-H", "Content-Type: application/octet-stream")
            #expect(answer.status == 200 && answer.json?["principal"]?.string == "ann", "\(answer.summary)")
            #expect(tomcat.arrived.filter { $0.hasPrefix("POST") } == ["POST /form/transfer \(length) \(sum)"])
            #expect(await tomcat.wasAsked(times: 1))
        }
    }

    @Test("sessions that end in the middle of traffic are seen by no caller: 50 POSTs at once arrive once each")
    func expiry() async throws {
        try await withTomcat { tomcat in
            #expect(try await tomcat.curl("/form/").status == 200)
            #expect(try await tomcat.direct("/form/open/expire.jsp").text.hasPrefix("1"))
            try await postAtOnce(tomcat, "a")
            #expect(await tomcat.wasAsked(times: 2))
            try await tomcat.restart()
            try await postAtOnce(tomcat, "b")
        }
    }

    private func postAtOnce(_ tomcat: Tomcat, _ round: String) async throws {
        try await withThrowingTaskGroup(of: Curl.self) { group in
            for number in 0..<50 {
                group.addTask {
                    try await tomcat.curl("/form/\(round)\(number)", "--data-binary", "body \(number)")
                }
            }
            for try await answer in group {
                #expect(answer.status == 200 && answer.json?["principal"]?.string == "ann", "\(answer.summary)")
            }
        }
        let posts = tomcat.arrived.filter { $0.hasPrefix("POST /form/\(round)") }.map { $0.split(separator: " ") }
        #expect(Set(posts.map { $0[1] }).count == 50 && posts.count == 50, "each arrives, and none twice")
        #expect(posts.allSatisfy { $0[2] == "\($0[1].dropFirst("/form/a".count).count + 5)" })
    }

    /// Ways to describe the login, with the application: an error page without a form, or the login page again.
    private static let ways: [(app: String, login: String)] = [
        ("form", "gateway: j-security-check, login: { timeout: 100s }"),
        ("again", "gateway: j-security-check, login: { timeout: 100s }"),
        ("form", "gateway: j-security-check, login: { timeout: 100s, url: /form/j_security_check }"),
        ("again", "gateway: j-security-check, login: { timeout: 100s, url: /again/j_security_check }"),
        ("form", "gateway: form, login: { timeout: 100s, page: /form/ }"),
        ("again", "gateway: form, login: { timeout: 100s, page: /again/ }"),
        ("form", "gateway: j-security-check, prove-at: /form/, login: { timeout: 100s }"),
        ("again", "gateway: form, prove-at: /again/, login: { timeout: 100s }"),
        ("form", "gateway: j-security-check, login: { timeout: 100s, failed: { body-contains: Wrong name } }"),
        ("form", "gateway: j-security-check, login: { timeout: 100s, success: [{ status: 303 }, { status: 302 }] }"),
    ]

    /// Runs `scenario` for each of the ways, at one Tomcat, with a daemon of its own.
    private func eachWay(
        password: String,
        _ scenario: (_ tomcat: Tomcat, _ app: String, _ path: String, _ way: String) async throws -> Void
    ) async throws {
        try await withTomcat(password: password) { tomcat in
            for (number, (app, login)) in Self.ways.enumerated() {
                try await tomcat.replaceDaemon(
                    "  - { name: portal, upstream: tomcat, credential: ann, \(login) }", password: password)
                try await scenario(tomcat, app, "/\(app)/way\(number)", "\(app), \(login)")
            }
        }
    }

    @Test("a wrong password reaches Tomcat once, and two would lock the account")
    func wrongPassword() async throws {
        var count = 0
        try await eachWay(password: "not-it") { tomcat, app, path, way in
            let first = try await tomcat.curl(path, "-d", "x=1")
            #expect(first.status == 502 && first.code == "login-rejected", "\(way): \(first.summary)")
            for _ in 0..<3 {
                let next = try await tomcat.curl("/\(app)/")
                #expect(next.status == 503 && next.code == "login-latched", "\(way): \(next.summary)")
            }
            count += 1
            #expect(await tomcat.wasAsked(times: count), "\(way)")
            // The right password makes Tomcat forget the wrong one.
            #expect(try await tomcat.isUnlocked(), "\(way)")
            #expect(!tomcat.arrived.contains { $0.contains(path) }, "\(way)")
        }
    }

    @Test("a right password is accepted, however the login is described")
    func rightPassword() async throws {
        var count = 0
        try await eachWay(password: "s3cret&more") { tomcat, app, path, way in
            for path in ["/\(app)/open/mention.jsp", "/\(app)/open/refuse.jsp", "/nowhere"] {
                #expect(try await tomcat.curl(path).code == nil, "\(way)")
            }
            // It shows that the password is right, if nothing else does: the address asks without the session, and not with it.
            let first = try await tomcat.curl(path)
            #expect(first.status == 200 && first.json?["principal"]?.string == "ann", "\(way): \(first.summary)")
            #expect(try await tomcat.curl(path, "-d", "x=1").status == 200, "\(way)")
            #expect(try await !tomcat.direct("/\(app)/open/expire.jsp").text.hasPrefix("0"), "\(way)")
            #expect(try await tomcat.curl("\(path)/next").status == 200, "\(way)")
            count += 2
            #expect(await tomcat.wasAsked(times: count), "\(way)")
            #expect(try await tomcat.isUnlocked(), "\(way)")
        }
    }

    @Test("what only looks like a challenge passes through, and nobody logs in")
    func innocent() async throws {
        try await withTomcat { tomcat in
            for path in ["/form/open/mention.jsp", "/form/open/refuse.jsp", "/nowhere"] {
                let (through, direct) = (try await tomcat.curl(path), try await tomcat.direct(path))
                #expect(through.status == direct.status && through.body == direct.body, "\(path): \(through.summary)")
            }
            #expect(tomcat.submissions == 0)
        }
    }
}
