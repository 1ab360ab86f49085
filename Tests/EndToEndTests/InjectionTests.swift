// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Synchronization
import Testing

@Suite("Values of a credential in the query, the path and the body")
struct InjectionTests {
    private static let token = "12345:t0ken/known"
    private static let key = "k3y known+"
    /// Parts of the secrets that none of their encodings changes.
    private static let traces = ["t0ken", "k3y"]

    private static var configuration: BankConfiguration {
        var configuration = BankConfiguration()
        configuration.challenges.append(
            """
            name: telegram
            upstream: server
            credential: telegram
            inject:
              path: "/bot{token}/"
              query: { api_key: "{key}" }
              body: { /api_key: "{key}" }
              fields: { X-Tenant: blue }
              clean: pages
            """)
        configuration.environment["COUNTERSIGN_TELEGRAM__TOKEN"] = token
        configuration.environment["COUNTERSIGN_TELEGRAM__KEY"] = key
        configuration.more = ["access-log: { format: json, to: \"${FOLDER}/access.log\" }"]
        return configuration
    }

    private static let prefix = "/bot12345:t0ken%2Fknown"
    private static let parameter = "api_key=k3y%20known%2B"

    /// Runs a scenario with a server that records its requests and answers by `answer`.
    private func withServer(
        _ answer: @escaping @Sendable (FakeRequest) -> FakeResponse,
        _ scenario: (Bank, @escaping () -> [FakeRequest]) async throws -> Void
    ) async throws {
        try await withBank(Self.configuration) { bank in
            let asked = Notebook()
            bank.upstream.override { request in
                guard request.target.contains("/open/") else { return nil }
                asked.add(request)
                return answer(request)
            }
            try await scenario(bank) { asked.all }
        }
    }

    @Test("they reach the server in place of what a caller sends there, and fields beside them")
    func sent() async throws {
        try await withServer({ _ in .text(200, "fine") }) { bank, asked in
            try await bank.expect("/open/a?api%5Fkey=mine&x=1&api_key", "-H", "X-Tenant: red", status: 200)
            try await bank.expect(
                "/open/b", "-H", "Content-Type: application/json", "-d",
                #"{"n":1.0,"api_key":"mine","api\u005fkey":2}"#, status: 200)
            try await bank.expect("/open/c", "-d", "api%5fkey=mine&x=1", status: 200)
            try await bank.expect(
                "/open/d", "-H", "Content-Type: application/json", "-H", "Transfer-Encoding: chunked", "-d", "{}",
                status: 200)
            let requests = asked()
            try #require(requests.count == 4)
            #expect(
                requests.map(\.target) == [
                    "\(Self.prefix)/open/a?x=1&\(Self.parameter)", "\(Self.prefix)/open/b?\(Self.parameter)",
                    "\(Self.prefix)/open/c?\(Self.parameter)", "\(Self.prefix)/open/d?\(Self.parameter)",
                ])
            #expect(requests.map { $0.field("X-Tenant") } == ["blue", "blue", "blue", "blue"])
            #expect(
                requests.map { String(decoding: $0.body, as: UTF8.self) } == [
                    "", #"{"n":1.0,"api_key":"k3y known+"}"#, "x=1&api_key=k3y+known%2B", #"{"api_key":"k3y known+"}"#,
                ])
            #expect(requests.map { $0.field("Content-Length") } == [nil, "32", "24", "24"])
        }
    }

    @Test(
        "a path that leads out of the injected one in any spelling is refused, and the server hears nothing of it",
        arguments: [
            "/open/%25%32%65%25%32%65/x", "/open/%25%32%45%25%32%65/x", "/open/%252e%252E/x", "/open/%25252525252e./x",
            "/open/..%253bv/x", "/open/a%25%32%66%25%32%65%25%32%65%25%32%66..%25%35%63x", "/open/%c0%ae%C0%AE/x",
            "/open/%25%63%30%25%61%65./x", "/open/%e0%80%ae%f0%80%80%ae/x",
        ])
    func escaping(path: String) async throws {
        try await withServer({ _ in .text(200, "fine") }) { bank, asked in
            try await bank.expect(path, "--path-as-is", status: 400, code: "bad-request")
            try await bank.expect(path + "?a=1", "--path-as-is", "-X", "POST", status: 400, code: "bad-request")
            #expect(asked().isEmpty)
            try await bank.expect("/open/%25%32%65a/%C3%AE", "--path-as-is", status: 200)
            #expect(asked().map(\.target) == ["\(Self.prefix)/open/%25%32%65a/%C3%AE?\(Self.parameter)"])
        }
    }

    @Test("a server that separates parameters at semicolons finds the injected one only, in queries and forms")
    func semicolons() async throws {
        let cases = [
            ("a=1;api_key=mine", "a=1"), ("api_key=mine;a=1", ""), ("a=1;api%5Fkey=x;api%255fkey=y;b", "a=1;b"),
            ("a;%2561pi_key=x&b;c;api_key", "a&b;c"), ("x;api%C1%9Fkey=mine", "x"), ("api_key;api_key", ""),
            ("a=1;;b=2;", "a=1;;b=2;"), ("a=api_key;API_KEY=1", "a=api_key;API_KEY=1"),
        ]
        try await withServer({ _ in .text(200, "fine") }) { bank, asked in
            for (text, rest) in cases {
                try await bank.expect("/open/q?\(text)", status: 200)
                try await bank.expect("/open/f", "-d", text, status: 200)
                let last = asked().suffix(2)
                let separator = rest.isEmpty ? "" : "&"
                #expect(last.first?.target == "\(Self.prefix)/open/q?\(rest)\(separator)\(Self.parameter)", "\(text)")
                #expect(
                    last.last.map { String(decoding: $0.body, as: UTF8.self) }
                        == "\(rest)\(separator)api_key=k3y+known%2B", "\(text)")
            }
        }
    }

    @Test("a request without one place for them is answered here, and the server hears nothing of it")
    func refused() async throws {
        try await withServer({ _ in .text(200, "fine") }) { bank, asked in
            let bodies = [
                ("text/plain", "a"), ("application/json", "{"), ("application/json", "[]"),
                ("multipart/form-data", "x"),
            ]
            for (type, body) in bodies {
                let answer = try await bank.expect(
                    "/open/a", "-H", "Content-Type: \(type)", "-d", body, status: 400, code: "bad-request")
                #expect(answer.detail.contains("body"), "\(answer.summary)")
            }
            try await bank.expect(
                "/open/a", "-H", "Content-Type: application/json", "-H", "Content-Encoding: gzip", "-d", "{}",
                status: 400,
                code: "bad-request")
            try await bank.expect("/open/./a", "--path-as-is", status: 400, code: "bad-request")
            bank.folder.write("{\"a\":\"" + String(repeating: "x", count: 1 << 19) + "\"}", to: "long.json")
            let long = try await bank.expect(
                "/open/a", "-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary",
                "@\(bank.folder.path(of: "long.json"))", status: 413, code: "body-not-replayable")
            #expect(long.detail.contains("512 KiB"))
            #expect(asked().isEmpty)
        }
    }

    @Test("nothing of them comes back, in addresses, other fields or pages, also in two pieces")
    func cleaned() async throws {
        let (prefix, parameter, token, key) = (Self.prefix, Self.parameter, Self.token, Self.key)
        try await withServer({ request in
            var response = FakeResponse(
                302,
                fields: [
                    ("Content-Type", "text/html"), ("Location", "\(prefix)/open/next?a=1&\(parameter)#end"),
                    ("Link", "<\(prefix)/open/2?\(parameter)&b>; rel=next"),
                    ("X-Asked", "\(request.method) \(request.target)"),
                    ("Set-Cookie", "at=\(prefix)/open; Path=\(prefix)/open"), ("Refresh", "1; url=\(prefix)/open/r"),
                ])
            let page = "<a href='\(request.target)'>\(token) \(key) k3y+known%2B</a> {\"k\":\"12345:t0ken\\/known\"}"
            let cut = page.utf8.count / 2
            response.body = .chunks([
                .init(String(page.prefix(cut))), .init(String(page.dropFirst(cut).prefix(1))),
                .init(String(page.dropFirst(cut + 1))),
            ])
            return response
        }) { bank, asked in
            let answer = try await bank.expect("/open/a?x=1", status: 302)
            #expect(answer.field("location") == "/open/next?a=1#end")
            #expect(answer.field("link") == "</open/2?b>; rel=next")
            #expect(answer.field("refresh") == "1; url=/open/r")
            #expect(answer.field("set-cookie")?.hasSuffix("Path=/open") == true)
            let whole = answer.fields.map(\.value).joined(separator: "\n") + answer.text
            for trace in Self.traces { #expect(!whole.contains(trace), "\(whole)") }
            #expect(answer.text.contains("/open/a?x=1"))
            #expect(asked().count == 1 && asked()[0].field("Accept-Encoding") == "identity")
        }
    }

    @Test("no log, report, command or local reply shows more than what the caller wrote")
    func secrecy() async throws {
        try await withServer({ request in
            request.path.hasSuffix("/cut") ? FakeResponse(200, fields: [("Bad Field", "x")]) : .text(200, "fine")
        }) { bank, _ in
            var outputs: [String] = []
            for path in ["/open/a?x=1", "/open/cut", "/open/./x"] {
                let answer = try await bank.curl(path, "--path-as-is")
                outputs.append(answer.fields.map(\.value).joined() + answer.text)
            }
            let bad = try await bank.curl("/open/a", "-H", "Content-Type: application/json", "-d", "{")
            outputs.append(bad.text + (bad.field("proxy-status") ?? ""))
            for path in ["/status", "/metrics", "/readyz?verbose", "/"] {
                outputs.append(try await bank.admin(path).text)
            }
            let commands = [
                try await bank.countersign("explain", bank.url("/open/a")),
                try await bank.countersign("explain", "--json", bank.url("/open/a")),
                try await bank.countersign("login", "telegram"), try await bank.countersign("doctor", "server"),
                try await bank.countersign("check"),
            ]
            outputs += commands.flatMap { [$0.output, $0.errors] }
            await bank.stopDaemon()
            outputs += bank.folder.files.filter { !$0.hasSuffix(".yaml") }.map {
                String(decoding: readFile($0), as: UTF8.self)
            }
            #expect(outputs.joined().contains("/open/a") && outputs.joined().contains("telegram"))
            for output in outputs {
                for trace in Self.traces { #expect(!output.contains(trace), "\(output)") }
            }
        }
    }
}

/// The requests that a server was asked, in order.
private final class Notebook: Sendable {
    private let requests = Mutex<[FakeRequest]>([])

    var all: [FakeRequest] { requests.withLock { $0 } }

    func add(_ request: FakeRequest) { requests.withLock { $0.append(request) } }
}

@Suite("Tokens against forged requests, with Django")
struct ForgeryTokenTests {
    private static let injection = """
        inject:
          X-CSRFToken: { value: "{cookie:csrftoken}", on: [POST, PUT, PATCH, DELETE] }
        """

    private func kind(_ more: String = injection) throws -> FakeKind {
        var kind = try Application.django.kind()
        kind.challenge += "\n\(more)"
        return kind
    }

    private func write(_ bank: Bank) async throws -> Curl {
        try await bank.curl("/write/", "--data", "amount=1", "-H", "X-CSRFToken: forged")
    }

    @Test("a caller's write gets the token of the session's cookie, cold and 20 at once, and is carried out once each")
    func once() async throws {
        try await withFake(try kind()) { bank, fake in
            let answers = try await withThrowingTaskGroup(of: Curl.self) { group in
                for _ in 0..<20 { group.addTask { try await write(bank) } }
                return try await group.reduce(into: [Curl]()) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0.status == 200 && $0.text == "written by ann" }, "\(answers.map(\.status))")
            #expect(fake.logins.count == 1)
            #expect(fake.arrived == Array(repeating: "POST /write/ ann", count: 20))
        }
    }

    @Test("the token follows the cookie when the server renews it, and replaces a caller's own")
    func renewed() async throws {
        try await withFake(try kind()) { bank, fake in
            for _ in 0..<2 {
                let answer = try await write(bank)
                #expect(answer.text == "written by ann", "\(answer.summary)")
                try await bank.expect("/rotate/", status: 200)
            }
            #expect(fake.logins.count == 1)
        }
    }

    @Test("without it the same write is refused by the server, whose answer passes")
    func refused() async throws {
        try await withFake(try kind("")) { bank, fake in
            let answer = try await write(bank)
            #expect(answer.status == 403)
            #expect(fake.arrived.isEmpty)
        }
    }
}
