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
