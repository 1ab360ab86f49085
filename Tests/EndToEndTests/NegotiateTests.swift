// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

@Suite("Negotiate, with a KDC of MIT krb5 and Apache")
struct NegotiateTests {
    private static let realm = "TEST.EXAMPLE"

    /// Runs a scenario with a realm, and the daemon in front of its web server with a credential of those fields.
    private func withRealm(
        _ fields: [String: String], scheme: String = "negotiate", life: Int? = nil,
        _ body: (_ bank: Bank, _ kdcLog: @escaping () -> String) async throws -> Void
    ) async throws {
        try await withBank(startsDaemon: false) { bank in
            let (kdc, web) = (Ports.next(), Ports.next())
            let place = bank.folder.path(of: "realm")
            // Apache's children are another user.
            unsafe chmod(bank.folder.path, 0o711)
            let realm = try await ScriptServer(
                "kerberos-realm", [place, "\(kdc)", "\(web)"] + (life.map { ["\($0)"] } ?? []), in: bank.folder)
            bank.configure {
                $0.upstreams = ["corp: { url: 'http://localhost:\(web)/' }"]
                $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: corp"
                $0.challenges = [
                    "name: corp\nupstream: corp\nscheme: \(scheme)" + (fields.isEmpty ? "" : "\ncredential: robot")
                ]
                $0.environment["KRB5_CONFIG"] = "\(place)/krb5.conf"
                $0.environment["KRB5CCNAME"] = "FILE:\(place)/no-cache"
                for (name, value) in fields {
                    let variable = name.uppercased().replacing("-", with: "_")
                    $0.environment["COUNTERSIGN_ROBOT__\(variable)"] = value.replacing("REALM", with: place)
                }
            }
            try await bank.startDaemon()
            try await body(bank) { bank.folder.text(of: "realm/kdc.log") }
            await realm.stop()
        }
    }

    @Test("a keytab is enough: the caller gets in, and the next requests meet no challenge")
    func keytab() async throws {
        try await withRealm(["principal": "robot", "keytab": "REALM/robot.keytab"]) { bank, _ in
            let first = try await bank.expect("/a", "--data", "hello", status: 200)
            #expect(first.field("x-user") == "robot@\(Self.realm)")
            #expect(first.text == "hello")
            #expect(first.field("www-authenticate") == nil)
            for _ in 0..<3 { try await bank.expect("/b", status: 200) }
            func statuses() -> [Substring] {
                bank.folder.text(of: "realm/access.log").split(separator: "\n").map { $0.split(separator: " ")[2] }
            }
            // Apache logs a little after it has answered.
            #expect(await eventually { statuses().count >= 6 })
            // A HEAD meets the challenge and another tries the ticket, before the body is sent.
            #expect(statuses() == ["401", "200", "200", "200", "200", "200"])
        }
    }

    @Test("an answer whose server cannot prove who it is stays here; one that proves nothing passes")
    func mutual() async throws {
        try await withRealm(["principal": "robot", "keytab": "REALM/robot.keytab"]) { bank, _ in
            for path in ["/forged", "/unproven"] {
                let answer = try await bank.expect(path, "--data", "hello", status: 502, code: "upstream-protocol")
                #expect(answer.detail.contains("could not prove"))
            }
            let log = bank.folder.text(of: "daemon.log")
            #expect(!log.contains("oRQwEqADCgEAoQsGCSqGSIb3EgECAg"))
            try await bank.expect("/silent", "--data", "hello", status: 200)
            try await bank.expect("/a", "--data", "hello", status: 200)
        }
    }

    @Test("50 posts at a time go on over the ends of tickets that live a few seconds, renewed by the keytab")
    func expiry() async throws {
        try await withRealm(["principal": "robot", "keytab": "REALM/robot.keytab"], life: 5) { bank, kdcLog in
            var rounds = 0
            let haveEnded = try await goingOn(until: { kdcLog().components("AS_REQ") >= 3 }) { round in
                let bodies = (0..<50).map { "\(round) \($0) " + String(repeating: "x", count: $0 * 999) }
                let answers = try await bank.storm(connections: 50, requests: 1) { number in
                    "POST /digest HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(bodies[number].utf8.count)\r\n\r\n"
                        + bodies[number]
                }
                let others = Set(answers.filter { $0.status != 200 }.map { "\($0.status) \($0.code ?? "")" })
                let log = bank.folder.text(of: "realm/apache.log").suffix(1000)
                #expect(others.isEmpty && answers.count == 50, "\(others) \(log)")
                let wrong = Set(answers.compactMap { $0.field("x-digest") })
                    .symmetricDifference(bodies.map { sha256(Array($0.utf8)) })
                #expect(wrong.count == 0, "\(answers.first?.head ?? "")")
                rounds += 1
            }
            #expect(haveEnded, "\(kdcLog().suffix(600))")
            func posts(_ status: String) -> Int {
                bank.folder.text(of: "realm/access.log").split(separator: "\n").count {
                    $0.hasPrefix("POST") && $0.split(separator: " ")[2] == status
                }
            }
            #expect(await eventually { posts("200") == rounds * 50 })
            // The login comes before any body.
            #expect(posts("401") <= 50)
        }
    }

    @Test("a password is, too")
    func password() async throws {
        try await withRealm(["principal": "ann", "password": "right"]) { bank, _ in
            let answer = try await bank.expect("/a", status: 200)
            #expect(answer.field("x-user") == "ann@\(Self.realm)")
        }
    }

    @Test(
        "what the KDC rejects is sent to it once, and the latch closes",
        arguments: [
            ["principal": "ann", "password": "wrong"], ["principal": "robot", "keytab": "REALM/stale.keytab"],
        ])
    func rejected(fields: [String: String]) async throws {
        try await withRealm(fields) { bank, kdcLog in
            try await bank.expect("/a", code: "login-rejected")
            let attempts = kdcLog().components("PREAUTH_FAILED")
            #expect(attempts == 1)
            try await bank.expect("/a", code: "login-latched")
            #expect(kdcLog().components("PREAUTH_FAILED") == attempts)
        }
    }

    @Test("a locked principal is told as such")
    func locked() async throws {
        try await withRealm(["principal": "locked", "password": "right"]) { bank, _ in
            try await bank.expect("/a", code: "account-locked")
        }
    }

    /// The statuses that Apache has logged.
    private func statuses(_ bank: Bank) -> [Substring] {
        bank.folder.text(of: "realm/access.log").split(separator: "\n").map { $0.split(separator: " ")[2] }
    }

    @Test("a dropped session takes along the connections that Apache has bound to its user")
    func bound() async throws {
        try await withRealm(["principal": "robot", "keytab": "REALM/robot.keytab"]) { bank, _ in
            for round in 1...2 {
                for number in 0..<3 {
                    let answer = try await bank.expect("/bound/\(number)", status: 200)
                    #expect(answer.field("x-user") == "robot@\(Self.realm)")
                }
                #expect(await eventually { statuses(bank).count >= 4 * round })
                let dropped = try await Command.countersign(
                    "sessions", "drop", "corp", "--config", bank.folder.path(of: "countersign.yaml"), in: bank.folder)
                #expect(dropped.exit == 0, "\(dropped)")
            }
            // A request without a ticket is a stranger's again.
            #expect(statuses(bank) == ["401", "200", "200", "200", "401", "200", "200", "200"])
        }
    }

    @Test("descriptors do not grow over reloads that rename the challenge")
    func reloads() async throws {
        try await withRealm(["principal": "robot", "keytab": "REALM/robot.keytab"]) { bank, _ in
            func rename(_ number: Int) async throws {
                bank.configure {
                    $0.challenges = [
                        "name: corp-\(number)\nupstream: corp\nscheme: negotiate\ncredential: robot"
                    ]
                }
                try bank.daemon.child.signal(SIGHUP)
                #expect(try await bank.daemon.waitForLog(#""reloaded""#, times: number))
                try await bank.expect("/bound/\(number)", status: 200)
            }
            for number in 1...4 { try await rename(number) }
            let before = try bank.daemon.descriptors
            for number in 5...16 { try await rename(number) }
            #expect(try await eventually { try bank.daemon.descriptors <= before }, "\(before)")
        }
    }

    @Test("without a ticket nothing latches, and the reason is told")
    func noTicket() async throws {
        try await withRealm([:]) { bank, _ in
            let answer = try await bank.expect("/a", code: "login-failed")
            #expect(answer.detail.contains("negotiate"))
        }
    }
}

@Suite("NTLM, with a server by impacket")
struct NTLMTests {
    private func withServer(
        password: String, _ body: (_ bank: Bank, _ attempts: @escaping () -> [String]) async throws -> Void
    ) async throws {
        try await withBank(startsDaemon: false) { bank in
            let port = Ports.next()
            let server = try await ScriptServer("ntlm-upstream", ["\(port)"], in: bank.folder)
            bank.configure {
                $0.upstreams = ["corp: { url: 'http://127.0.0.1:\(port)/' }"]
                $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: corp"
                $0.challenges = ["name: corp\nupstream: corp\nscheme: ntlm\ncredential: ann"]
                $0.environment["COUNTERSIGN_ANN__USERNAME"] = #"TEST\ann"#
                $0.environment["COUNTERSIGN_ANN__PASSWORD"] = password
            }
            try await bank.startDaemon()
            try await body(bank) {
                server.output.split(separator: "\n").map(String.init).filter { $0.hasPrefix("attempt ") }
            }
            await server.stop()
        }
    }

    @Test("authenticates the connection, which then serves the requests that follow")
    func authenticated() async throws {
        try await withServer(password: "right") { bank, attempts in
            let first = try await bank.expect("/a", "--data", "hello", status: 200)
            #expect(first.field("x-user") == "ann")
            #expect(first.text == "hello")
            for number in 0..<3 {
                let next = try await bank.expect("/b", "--data", "body \(number)", status: 200)
                #expect(next.text == "body \(number)")
                #expect(next.field("x-connection") == first.field("x-connection"))
            }
            #expect(attempts() == ["attempt ann ok"])
        }
    }

    @Test("carries long bodies and such of unknown length whole, many at once")
    func bodies() async throws {
        try await withServer(password: "right") { bank, _ in
            let body = String(repeating: "0123456789abcdef", count: 20_000)
            let file = bank.folder.write(body, to: "body")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<10 {
                    group.addTask {
                        let chunked = number % 2 == 0 ? ["-H", "Transfer-Encoding: chunked"] : []
                        let answer = try await Curl.run(
                            chunked + ["--data-binary", "@\(file)", bank.url("/\(number)")], in: bank.folder)
                        return answer.status == 200 && answer.text == body
                    }
                }
                for try await isWhole in group { #expect(isWhole) }
            }
        }
    }

    @Test("50 posts around a restart of the server all arrive, each once and as it was sent")
    func restarted() async throws {
        let kind = FakeKind(script: "../ntlm-upstream", challenge: "scheme: ntlm")
        try await withFake(kind, user: #"TEST\ann"#, password: "right") { bank, server in
            try await server.expectPostsOnce(through: bank, at: "/cold")
            try await server.direct("/-fake/restart?at=25")
            try await server.expectPostsOnce(through: bank, at: "/graceful")
            try await server.restart()
            try await server.expectPostsOnce(through: bank, at: "/restarted")
            try await server.restart()
            try await server.direct("/-fake/restart?at=25")
            try await server.expectPostsOnce(through: bank, at: "/again")
        }
    }

    @Test("a wrong password reaches the server once, then nothing does")
    func wrong() async throws {
        try await withServer(password: "wrong") { bank, attempts in
            try await bank.expect("/a", code: "login-rejected")
            #expect(attempts() == ["attempt ann wrong"])
            try await bank.expect("/a", code: "login-latched")
            #expect(attempts() == ["attempt ann wrong"])
        }
    }
}
