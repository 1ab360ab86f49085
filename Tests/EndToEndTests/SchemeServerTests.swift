// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

/// Basic and Digest of real servers: nginx and Apache httpd, each in front of the fake upstream.
@Suite("HTTP authentication at real servers", .serialized)
struct SchemeServerTests {
    @Test("nginx with Basic: no caller meets a challenge, and the server meets one")
    func basic() async throws {
        try await withGuard(scheme: "basic") {
            try await .nginx(before: $0)
        } _: { bank, server in
            for _ in 0..<3 {
                let answer = try await bank.expect("/open/echo", "-H", "Authorization: Bearer own", status: 200)
                #expect(answer.json?["fields"].map(fields)?["x-remote-user"] == "ann")
                #expect(answer.field("www-authenticate") == nil)
            }
            #expect(server.refusals == 1 && server.requests.count == 4)
        }
    }

    @Test("nginx with Basic, user and password in UTF-8, along with the first request that has a body")
    func signs() async throws {
        let environment = ["COUNTERSIGN_CORP__USERNAME": "jörg", "COUNTERSIGN_CORP__PASSWORD": "geheim ß"]
        try await withGuard(scheme: "basic", environment: environment) {
            try await .nginx(before: $0, user: "jörg", password: "geheim ß")
        } _: { bank, server in
            let answer = try await bank.expect("/open/echo", "--data-binary", "a body", status: 200)
            #expect(answer.json?["size"] == 6)
            #expect(server.refusals == 0)
        }
    }

    @Test("Apache with Digest: one nonce serves every request, each with a count of its own")
    func digest() async throws {
        try await withGuard(scheme: "[digest, basic]") {
            try await .apache(before: $0)
        } _: { bank, server in
            for number in 1...5 {
                let answer = try await bank.expect("/open/echo?x=%20\(number)", status: 200)
                #expect(answer.json?["fields"].map(fields)?["x-remote-user"] == "ann")
                #expect(answer.field("authentication-info") == nil)
            }
            let answers = try await bank.storm(connections: 10, requests: 10) { _ in
                "GET /open/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"
            }
            #expect(answers.count == 100 && answers.allSatisfy { $0.status == 200 })
            #expect(server.refusals == 1)
            #expect(server.requests.count { $0.contains("nc=") } == 105)
        }
    }

    /// Nonces expire one after the other while 50 callers post.
    @Test("Apache with nonces of one second: no caller notices, and every post arrives once")
    func expiry() async throws {
        try await withGuard(scheme: "digest", workers: 2) {
            try await .apache(before: $0, lifetime: 1)
        } _: { bank, server in
            var sent = 0
            let haveEnded = try await goingOn(until: { server.refusals >= 3 }) { _ in
                let first = sent
                let answers = try await bank.storm(connections: 50, requests: 2) { number in
                    let body = "body \(first + number) " + String(repeating: "x", count: 3000)
                    return
                        "POST /open/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
                }
                #expect(answers.count == 100 && answers.allSatisfy { $0.status == 200 }, "\(answers.first?.text ?? "")")
                sent += 100
            }
            let hits = bank.record.hits.filter { $0.method == "POST" }
            #expect(hits.count == sent && Set(hits.map(\.digest)).count == sent)
            #expect(haveEnded)
        }
    }

    @Test("a server that restarts knows no nonce of before, and no caller notices")
    func restart() async throws {
        try await withGuard(scheme: "digest") {
            try await .apache(before: $0)
        } _: { bank, server in
            try await bank.expect("/open/echo", status: 200)
            try await server.restart()
            try await bank.expect("/open/echo", "-d", "x", status: 200)
            try await bank.expect("/open/echo", status: 200)
        }
    }

    @Test(
        "a wrong password is sent once, whoever asks; later callers are told, after a restart too",
        arguments: ["basic", "digest"])
    func wrongPassword(scheme: String) async throws {
        let environment = ["COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": "wrong"]
        try await withGuard(scheme: scheme, workers: 2, environment: environment) {
            scheme == "basic" ? try await .nginx(before: $0) : try await .apache(before: $0)
        } _: { bank, server in
            let answers = try await bank.storm(connections: 50, requests: 1) { _ in
                "POST /open/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"
            }
            #expect(answers.count == 50)
            #expect(answers.allSatisfy { ["login-rejected", "login-latched"].contains($0.code) })
            #expect(answers.contains { $0.code == "login-rejected" })
            #expect(server.answers == 1)
            try await bank.expect("/open/echo", status: 503, code: "login-latched")
            await bank.killDaemon()
            try await bank.startDaemon()
            try await bank.expect("/open/echo", status: 503, code: "login-latched")
            #expect(server.answers == 1)
            await bank.stopDaemon()
            bank.configure { $0.environment["COUNTERSIGN_CORP__PASSWORD"] = "demo" }
            try await bank.startDaemon()
            try await bank.expect("/open/echo", status: 200)
        }
    }

    @Test(
        "Apache that refuses a known user some resources has nothing latched, and they may come first after a crash",
        arguments: ["basic", "digest"])
    func forbidden(scheme: String) async throws {
        let prefix = scheme == "basic" ? "/basic" : ""
        try await withGuard(scheme: scheme) {
            try await .apache(before: $0)
        } _: { bank, server in
            let first = try await bank.curl("\(prefix)/open/echo")
            #expect(first.status != 401 && first.code == nil, "\(first.summary)")
            for _ in 0..<2 {
                for number in 1...2 {
                    let refused = try await bank.curl("\(prefix)/admin/\(number)")
                    #expect(refused.status == 401 && refused.code == nil, "\(refused.summary)")
                }
                let open = try await bank.curl("\(prefix)/open/echo")
                #expect(open.status == first.status && open.code == nil, "\(open.summary)")
                await bank.killDaemon()
                try await bank.startDaemon()
            }
            #expect(try await !bank.countersign("status").output.contains("rejected"))
        }
    }

    @Test("two realms of one server have a session each, told apart by where they are")
    func realms() async throws {
        let both = """
            name: other
            upstream: guarded
            scheme: basic
            realm: Other
            credential: other
            """
        let environment = [
            "COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": "demo",
            "COUNTERSIGN_OTHER__USERNAME": "bob", "COUNTERSIGN_OTHER__PASSWORD": "demo",
        ]
        try await withGuard(scheme: "basic\nrealm: Nginx", more: [both], environment: environment) {
            try await .nginx(before: $0)
        } _: { bank, server in
            for _ in 0..<2 {
                for (path, user) in [("/open/echo", "ann"), ("/other/open/echo", "bob")] {
                    let answer = try await bank.expect(path, status: 200)
                    #expect(answer.json?["fields"].map(fields)?["x-remote-user"] == user)
                }
            }
            #expect(await eventually { server.refusals == 2 && server.requests.count == 6 }, "\(server.requests)")
        }
    }

    @Test("at the start, and by `login`, the password is tried without any caller", arguments: ["basic", "digest"])
    func ahead(scheme: String) async throws {
        try await withGuard(scheme: "\(scheme)\nlogin: at-start") {
            scheme == "basic" ? try await .nginx(before: $0) : try await .apache(before: $0)
        } _: { bank, server in
            #expect(await eventually { server.answers == 1 })
            try await bank.expect("/open/echo", "-d", "x", status: 200)
            #expect(server.answers == 2)
            #expect(try await bank.countersign("login", "corp").exit == 0)
            bank.configure { $0.environment["COUNTERSIGN_CORP__PASSWORD"] = "wrong" }
            let before = server.answers
            // The daemon still has the right one.
            let login = try await bank.countersign("login", "--here", "corp")
            #expect(login.exit == 77 || login.exit == 69, "\(login.output) \(login.errors)")
            #expect((login.output + login.errors).contains("rejected"))
            #expect(server.answers == before + 1)
        }
    }

    @Test("what is open there passes, and so does a 401 that asks for another scheme")
    func untouched() async throws {
        try await withGuard(scheme: "digest") {
            try await .nginx(before: $0)
        } _: { bank, server in
            try await bank.expect("/public/", status: 204)
            let answer = try await bank.expect("/open/echo", status: 401)
            #expect(answer.field("www-authenticate") == "Basic realm=\"Nginx\"")
            // `login` finds no challenge of its own there either.
            let login = try await bank.countersign("login", "corp")
            #expect(login.exit != 0 && (login.output + login.errors).contains("started no login"))
            #expect(server.answers == 0)
        }
    }
}

/// Runs a scenario with the server in front of the fake upstream, and the daemon in front of the server.
func withGuard(
    scheme: String, more: [String] = [], workers: Int = 1,
    environment: [String: String] = ["COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": "demo"],
    server start: (UInt16) async throws -> GuardedServer,
    _ scenario: (Bank, GuardedServer) async throws -> Void
) async throws {
    var configuration = BankConfiguration()
    configuration.mobileFirst = []
    configuration.workers = workers
    configuration.environment = environment
    configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: guarded"
    configuration.challenges = ["name: corp\nupstream: guarded\ncredential: corp\nscheme: \(scheme)"] + more
    try await withBank(configuration, startsDaemon: false) { bank in
        let server = try await start(bank.upstream.port)
        var result: Result<Void, any Error> = .success(())
        do {
            bank.configure { $0.upstreams = ["guarded:\n  url: http://127.0.0.1:\(server.port)/"] }
            try await bank.startDaemon()
            try await scenario(bank, server)
        } catch {
            result = .failure(error)
        }
        await bank.stopDaemon()
        await server.stop()
        try result.get()
    }
}
