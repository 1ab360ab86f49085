// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import TestSupport
import Testing

@Suite("the fakes together")
struct FakeUpstreamTests {
    @Test("a balance over a socket")
    func balance() async throws {
        let upstream = FakeUpstream()
        try upstream.start()
        defer { upstream.stop() }
        #expect(upstream.bankURL == "http://127.0.0.1:\(upstream.port)/mfp/api/adapters/bank/")
        let client = try RawClient(port: upstream.port)
        var phone = try TestPhone { try exchange($0, over: client) }
        #expect(try phone.register().status == 201)
        #expect(try phone.resource("bank/balance", token: nil).status == 401)
        #expect(try phone.preauthorize("accessRestricted").status == 401)
        #expect(try phone.pin("9999", scope: "accessRestricted").status == 401)
        let token = try phone.login()
        #expect(try phone.resource("bank/balance", token: token).json?["balance"] == "$1,438.20")
        let receipt = try phone.resource("bank/transfer", token: token, method: "POST", body: Array("{\"to\":1}".utf8))
        #expect(receipt.status == 201)
        #expect(receipt.json?["request"] == ["to": 1])
        #expect(try phone.resource("bank/transfer", token: token).status == 405)
        let whoami = try phone.resource("bank/whoami", token: token).text
        #expect(whoami.contains("\"Authorization\":\"<present>\""))
        #expect(!whoami.contains(token))
        let record = upstream.recorder.record
        #expect(record.violations == [])
        #expect(record.hits.map(\.method) == ["GET", "POST", "GET"])
        #expect(record.hits[1].digest == sha256(Array("{\"to\":1}".utf8)))
        #expect(record.count("POST", "/mfp/api/preauth/v1/preauthorize", status: 401) == 2)
    }

    @Test("server-sent events come one by one")
    func stream() throws {
        let upstream = FakeUpstream()
        try upstream.start()
        defer { upstream.stop() }
        let client = try RawClient(port: upstream.port)
        try client.send("GET /open/stream?lines=2&pause=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        let text = try client.read(until: "\r\n0\r\n\r\n")
        #expect(text.contains("Content-Type: text/event-stream\r\n"))
        #expect(text.contains("data: tick 1\n\n\r\n") && text.contains("data: tick 2\n\n\r\n"))
    }

    @Test("the Basic area lets in whoever knows the password, in any case of the scheme")
    func basic() {
        let upstream = FakeUpstream()
        func ask(_ authorization: String?) -> FakeResponse {
            upstream.respond(
                to: FakeRequest("GET", "/basic/x", fields: authorization.map { [("Authorization", $0)] } ?? []))
        }
        let bare = ask(nil)
        #expect(bare.status == 401)
        #expect(bare.field("WWW-Authenticate") == "Basic realm=\"Demo\", charset=\"UTF-8\"")
        #expect(ask("Basic YW5uOmRlbW8=").status == 200)
        #expect(ask("basic YW5uOmRlbW8=").status == 200)
        #expect(ask("Basic YW5uOng=").status == 401)
        #expect(ask("Bearer x").status == 401)
        let record = upstream.recorder.record
        #expect(record.answerCount(to: "basic") == 4)
        #expect(record.wrongAnswers == ["basic": 2])
        #expect(record.hits.count == 2)
    }

    @Test("the form area, its logout, and the gateway's login do not get into each other's way")
    func form() {
        let upstream = FakeUpstream()
        let page = upstream.respond(to: FakeRequest("GET", "/form/a"))
        let login = FakeRequest(
            "POST", "/form/j_security_check",
            fields: [("Cookie", cookie(page)), ("Content-Type", "application/x-www-form-urlencoded")],
            body: Array("j_username=ann&j_password=demo".utf8))
        let session = cookie(upstream.respond(to: login))
        func get(_ path: String) -> FakeResponse {
            upstream.respond(to: FakeRequest("GET", path, fields: [("Cookie", session)]))
        }
        #expect(get("/form/a").json?["path"] == "/form/a")
        #expect(get("/form/logout").status == 200)
        #expect(get("/form/a").text.contains("j_security_check"))
        #expect(upstream.recorder.record.logins == ["form": 1])
    }

    @Test("the open area echoes, and answers with any status, size and cookie")
    func open() {
        let upstream = FakeUpstream()
        func get(_ path: String) -> FakeResponse { upstream.respond(to: FakeRequest("GET", "/open/\(path)")) }
        #expect(get("anything?x=1").json?["query"] == "x=1")
        #expect(get("status/418").status == 418)
        #expect(upstream.recorder.record.hits.map(\.path) == ["/open/anything", "/open/status/418"])
        #expect(get("status/99").status == 400)
        #expect(get("cookie").field("Set-Cookie")?.hasPrefix("flavour=") == true)
        guard case .generated(count: 7) = get("bytes?count=7").body else {
            Issue.record("not generated")
            return
        }
    }

    @Test("a handler put before all areas answers first, and what it leaves goes on")
    func override() {
        let upstream = FakeUpstream()
        upstream.override { $0.path == "/own" ? .text(207, "own") : nil }
        #expect(upstream.respond(to: FakeRequest("GET", "/own")).status == 207)
        #expect(upstream.respond(to: FakeRequest("GET", "/open/x")).status == 200)
        #expect(upstream.recorder.record.transcript.map(\.status) == [207, 200])
    }
}

/// Sends a request over a socket and reads the answer.
private func exchange(_ request: FakeRequest, over client: RawClient) throws -> FakeResponse {
    var head = "\(request.method) \(request.target) HTTP/1.1\r\nHost: x\r\nContent-Length: \(request.body.count)\r\n"
    for field in request.fields { head += "\(field.name): \(field.value)\r\n" }
    try client.send(Array("\(head)\r\n".utf8) + request.body)
    let (status, answer, body) = try client.response()
    let fields = answer.split(separator: "\r\n").dropFirst().map { line in
        let name = line.prefix { $0 != ":" }
        return (name: String(name), value: String(line.dropFirst(name.count + 2)))
    }
    return FakeResponse(status, fields: fields, body: Array(body.utf8))
}
