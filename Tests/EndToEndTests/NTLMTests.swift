// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

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
