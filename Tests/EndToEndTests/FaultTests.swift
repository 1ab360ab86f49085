// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("When something breaks")
struct FaultTests {
    @Test("an upstream that dies within a body of known length breaks the caller's connection")
    func cutLength() async throws {
        try await withBank { bank in
            try await bank.expect("/bytes?count=1", status: 200)
            try await bank.leaksNothing {
                bank.upstream.faults.add(Fault(.cut(after: 5_000), at: .resource, times: 1))
                let answer = try await bank.curl("/bytes?count=100000")
                #expect([18, 56].contains(answer.exit))
                #expect(answer.body.count < 100_000)
            }
        }
    }

    @Test("an upstream that dies between chunks breaks the caller's connection", arguments: [false, true])
    func cutChunks(resets: Bool) async throws {
        try await withBank { bank in
            try await bank.expect("/stream?lines=1", status: 200)
            try await bank.leaksNothing {
                bank.upstream.faults.add(Fault(.cut(after: 250, reset: resets), at: .resource, times: 1))
                let answer = try await bank.curl("/stream?lines=20&pause=1")
                #expect([18, 56].contains(answer.exit))
            }
        }
    }

    @Test("a caller of HTTP/1.0, who knows the end by the close, gets a reset")
    func cutBeforeOldCaller() async throws {
        try await withBank { bank in
            try await bank.expect("/stream?lines=1", status: 200)
            bank.upstream.faults.add(Fault(.cut(after: 250), at: .resource, times: 1))
            let end = try await offPool {
                let connection = try bank.connect()
                connection.send("GET /stream?lines=20&pause=1 HTTP/1.0\r\n\r\n")
                return connection.rest().end
            }
            #expect(end == .reset)
        }
    }

    @Test("an upstream that goes down in the middle of a stream breaks it, and is used again when it is back")
    func goesDown() async throws {
        try await withBank { bank in
            try await bank.expect("/stream?lines=1", status: 200)
            try await bank.leaksNothing {
                let hits = bank.record.hits.count
                async let stream = bank.curl("/stream?lines=200&pause=50")
                #expect(await bank.upstream.recorder.waitUntil { $0.hits.count > hits })
                await offPool { bank.upstream.stop() }
                #expect([18, 56].contains(try await stream.exit))
                try bank.upstream.start()
            }
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("an upstream that never answers is 504 after its time")
    func hung() async throws {
        var configuration = BankConfiguration()
        configuration.bank = ["timeouts: { response: 3s }"]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", status: 200)
            try await bank.leaksNothing {
                bank.upstream.faults.add(Fault(.hang, at: .resource, times: 1))
                let answer = try await bank.curl("/balance")
                #expect(answer.status == 504)
                #expect(answer.code == "upstream-timeout")
                #expect(answer.field("proxy-status")?.contains("error=http_response_timeout") == true)
            }
        }
    }

    @Test(
        "a name that does not resolve and a port that refuses are 502", arguments: ["nowhere.invalid", "127.0.0.1:1"])
    func unreachable(authority: String) async throws {
        var configuration = BankConfiguration()
        configuration.upstreams = ["gone:\n  url: http://\(authority)/"]
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            upstream: bank
            routes: [{ path: /gone/, upstream: gone }]
            """
        try await withBank(configuration) { bank in
            try await bank.leaksNothing {
                let answer = try await bank.curl("/gone/x")
                #expect(answer.status == 502)
                #expect(answer.code == "upstream-unreachable")
                #expect(answer.json?["upstream"] == "gone")
                // Nothing internal: the name of the upstream, not its address.
                #expect(!answer.text.contains(authority))
            }
        }
    }

    @Test("a caller that leaves in the middle of a head or of a body takes nothing with it")
    func halfSent() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            try await bank.leaksNothing {
                try await offPool {
                    for text in [
                        "GET /bal", "GET /balance HTTP/1.1\r\nHost: loc",
                        "POST /transfer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf",
                        "POST /transfer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf",
                    ] {
                        let connection = try bank.connect()
                        connection.send(text)
                    }
                }
            }
            #expect(bank.record.hits.count { $0.method == "POST" } == 0)
        }
    }

    @Test("an upstream that closed its kept connection costs the caller nothing")
    func staleConnection() async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.close, at: .resource))
            for _ in 0..<5 { try await bank.expect("/balance", status: 200) }
            bank.upstream.faults.clear()
            try await bank.expect("/balance", status: 200)
            await offPool { bank.upstream.stop() }
            let refused = try await bank.curl("/balance")
            #expect(refused.code == "upstream-unreachable")
            try bank.upstream.start()
            try await bank.expect("/balance", status: 200)
        }
    }

    @Test(
        "an answer that is no HTTP is 502",
        arguments: [
            "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nBad Name: x\r\nContent-Length: 0\r\n\r\n",
        ])
    func nonsense(answer: String) async throws {
        try await withBank { bank in
            bank.upstream.faults.add(
                Fault(.altered { $0.body = .raw(Array(answer.utf8)) }, at: .other, times: 1))
            let got = try await bank.curl("/open/x")
            #expect(got.status == 502)
            #expect(got.code == "upstream-protocol")
            try await bank.expect("/open/x", status: 200)
        }
    }
}

extension Bank {
    /// Runs `work`. The next request must work after that, and the daemon must hold no more descriptors than before.
    func leaksNothing(_ work: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await expect("/balance", status: 200, sourceLocation: sourceLocation)
        let daemon = try daemon
        let before = daemon.descriptors
        try await work()
        try await expect("/balance", status: 200, sourceLocation: sourceLocation)
        // One connection to the upstream may have been added to those that are kept for the next request.
        let settled = await eventually { daemon.descriptors <= before + 1 }
        #expect(
            settled, "\(before) descriptors before, \(daemon.descriptors) after", sourceLocation: sourceLocation)
    }
}
