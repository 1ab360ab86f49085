// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("What upstreams send")
struct TransportTests {
    @Test("a body that ends with the connection is whole; a reset in it is not")
    func untilClose() async throws {
        try await withBank { bank in
            let body = pattern(40_000)
            bank.upstream.override { request in
                guard request.path == "/open/until-close" else { return nil }
                var response = FakeResponse(200, fields: [("Content-Type", "application/octet-stream")])
                response.body = .untilClose(body)
                if request.query == "reset" { response.delivery.cutsAfter = 10_000 }
                response.delivery.resets = request.query == "reset"
                return response
            }
            let whole = try await bank.expect("/open/until-close", status: 200)
            #expect(whole.exit == 0)
            #expect(whole.body == body)
            #expect([18, 56].contains(try await bank.curl("/open/until-close?reset").exit))
        }
    }

    @Test("encoded bodies, repeated fields and cookies pass as they came")
    func passesThrough() async throws {
        try await withBank { bank in
            bank.upstream.override { request in
                guard request.path == "/open/fields" else { return nil }
                return FakeResponse(
                    200,
                    fields: [
                        ("Content-Encoding", "gzip"), ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Path=/"),
                        ("X-Odd", "a  b\t\u{e4}"), ("ETag", #"W/"1""#), ("Content-Type", "application/x-thing"),
                    ], body: [0x1f, 0x8b, 0, 1, 2, 3])
            }
            let answer = try await bank.expect("/open/fields", "-H", "Cookie: mine=1", status: 200)
            #expect(answer.body == [0x1f, 0x8b, 0, 1, 2, 3])
            #expect(answer.field("content-encoding") == "gzip")
            #expect(answer.field("x-odd") == "a  b\t\u{e4}")
            #expect(answer.field("etag") == #"W/"1""#)
            #expect(answer.fields.filter { $0.name == "set-cookie" }.map(\.value) == ["a=1; Path=/", "b=2; Path=/"])
            #expect(answer.field("via")?.contains("countersign") == true)
            // No cookie of one caller is kept for another.
            let other = try await bank.expect("/open/echo", status: 200)
            #expect(other.json?["fields"].map(fields)?["cookie"] == nil)
        }
    }

    @Test("interim responses do not count as the answer")
    func interim() async throws {
        try await withBank { bank in
            let text = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            bank.upstream.override { request in
                guard request.path == "/open/hints" else { return nil }
                var response = FakeResponse(200)
                response.body = .raw(Array(text.utf8))
                return response
            }
            let answer = try await bank.expect("/open/hints", status: 200)
            #expect(answer.text == "ok")
            #expect(answer.field("link") == nil)
        }
    }

    @Test("an answer that comes before the request's body is complete reaches the caller")
    func earlyAnswer() async throws {
        try await withBank { bank in
            bank.upstream.override { request in
                request.path == "/open/reject" ? FakeResponse(413, fields: [("Connection", "close")]) : nil
            }
            let file = bank.folder.write(pattern(3_000_000), to: "body")
            let answer = try await bank.curl("/open/reject", "--data-binary", "@\(file)")
            #expect(answer.status == 413)
            try await bank.expect("/open/x", status: 200)
        }
    }

    @Test("a proxy named in the environment is nobody's business")
    func environmentProxy() async throws {
        var configuration = BankConfiguration()
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
            configuration.environment[name] = "http://127.0.0.1:1"
        }
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", status: 200)
        }
    }

    @Test("a redirect is the caller's to follow")
    func redirect() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            bank.upstream.faults.add(Fault(.redirect(to: "https://elsewhere.example/"), at: .resource, times: 1))
            let answer = try await bank.expect("/balance", status: 302)
            #expect(answer.field("location") == "https://elsewhere.example/")
        }
    }
}

@Suite("Logins at servers that compress every answer, whatever was asked for")
struct CompressedAnswerTests {
    @Test(
        "a login page and what follows it may come compressed",
        arguments: [FakeKind.undertow, .webSEALByRedirect], ["gzip", "deflate", "bomb"])
    func form(_ kind: FakeKind, coding: String) async throws {
        try await withFake(kind) { bank, fake in
            try await fake.direct("/-fake/compress?coding=\(coding)")
            let answer = try await bank.expect("/app/reports", status: 200)
            // The caller gets it as it came.
            #expect(answer.field("content-encoding") == (coding == "deflate" ? "deflate" : "gzip"))
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("a wrong password that a compressed answer tells is latched", arguments: ["gzip", "deflate"])
    func wrongPassword(coding: String) async throws {
        try await withFake(.token, password: "not-it") { bank, fake in
            try await fake.direct("/-fake/compress?coding=\(coding)")
            try await bank.expect("/api/accounts", code: "login-rejected")
            try await bank.expect("/api/accounts", code: "login-latched")
            #expect(fake.logins == ["ann wrong"])
        }
    }

    @Test("a token in a compressed answer is taken out of it", arguments: ["gzip", "deflate"])
    func token(coding: String) async throws {
        try await withFake(.token) { bank, fake in
            try await fake.direct("/-fake/compress?coding=\(coding)")
            try await bank.expect("/api/accounts", status: 200)
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("an answer of 8 MiB in 8 KiB is an unknown outcome, and latches nothing")
    func bomb() async throws {
        try await withFake(.token) { bank, fake in
            try await fake.direct("/-fake/compress?coding=bomb")
            try await bank.expect("/api/accounts", code: "login-failed")
            let status = try await bank.admin("/status").text
            #expect(!status.contains("latched"), "\(status)")
        }
    }
}

@Suite("A body of 50 MB")
struct LargeBodyTests {
    private static let size = 50 * 1024 * 1024
    /// The bytes that the upstream generates: the alphabet over and over.
    private static let bytes: [UInt8] = {
        let block = (0..<2_600).flatMap { _ in Array("abcdefghijklmnopqrstuvwxyz".utf8) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + block.count)
        while bytes.count < size { bytes += block }
        bytes.removeLast(bytes.count - size)
        return bytes
    }()

    @Test("comes down byte for byte, and is never in memory whole")
    func download() async throws {
        try await withBank { bank in
            let answer = try await bank.curl("/bytes?count=\(Self.size)")
            #expect(answer.exit == 0)
            #expect(answer.body == Self.bytes)
            #expect(try bank.daemon.peakKilobytes < 60_000)
        }
    }

    @Test("is held back where the caller does not read, and comes down when it does")
    func backPressure() async throws {
        try await withBank { bank in
            let connection = try bank.connect()
            await offPool { _ = connection.send("GET /open/bytes?count=\(Self.size) HTTP/1.0\r\n\r\n") }
            let first = await offPool { connection.receive(until: "abc") }
            #expect(first.contains("200"))
            // Requests of others go on meanwhile.
            for _ in 0..<5 { try await bank.expect("/balance", status: 200) }
            #expect(try bank.daemon.peakKilobytes < 60_000)
            let rest = await offPool { connection.rest() }
            #expect(rest.end == .closed)
            #expect(first.utf8.count + rest.bytes.count > Self.size)
            #expect(rest.bytes.suffix(1000) == Self.bytes.suffix(1000))
        }
    }

    @Test("goes up byte for byte, with its length told and in chunks", arguments: [false, true])
    func upload(isChunked: Bool) async throws {
        try await withBank { bank in
            // A body this long is streamed only on a session that is there.
            try await bank.expect("/echo", "-d", "", status: 200)
            let file = bank.folder.write(Self.bytes, to: "body")
            let framing = isChunked ? ["-H", "Transfer-Encoding: chunked"] : []
            let answer = try await Curl.run(
                framing + [
                    "-H", "Content-Type: application/octet-stream", "-X", "POST", "-T", file, bank.url("/echo"),
                ],
                in: bank.folder)
            #expect(answer.status == 200, "\(answer.summary)")
            #expect(answer.json?["sha256"]?.string == sha256(Self.bytes))
            #expect(try bank.daemon.peakKilobytes < 60_000)
        }
    }
}
