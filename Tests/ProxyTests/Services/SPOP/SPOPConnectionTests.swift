// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import Proxy

@Suite("HAProxy that asks an auth-request listener")
struct SPOPConnectionTests {
    private func rig(
        limits: WorkerLimits = WorkerLimits(), _ token: String = "t", name: HTTPField.Name = .authorization
    ) throws -> AuthRequestRig {
        try AuthRequestRig(
            { port in
                let login = Authenticator.scripted(port: port) { number, _, _ in
                    Session(fields: [InjectedField(name: name, value: Secret("\(token)\(number)"))])
                }
                return .bank(port: port, logins: [login])
            }, limits: limits)
    }

    @Test("HAProxy gets the session's fields as variables from one login; nothing goes upstream")
    func fields() throws {
        let name = try #require(HTTPField.Name("X-Api-Key"))
        let rig = try rig(name: name)
        let haproxy = try SPOPPeer.greeting(rig)
        for number in 1...3 as ClosedRange<UInt64> {
            let variables = try haproxy.ask("POST", "/a?b=c", "Content-Length: 5\r\n", stream: 1 << 40, number: number)
            #expect(variables == ["status": .number(200), "field_x_api_key": .text("t1")])
        }
        #expect(rig.proxy.log.count == 1 && rig.heads.isEmpty)
    }

    @Test("HAProxy is answered frame by frame, however the bytes arrive")
    func pieces() throws {
        let rig = try rig()
        let haproxy = try SPOPPeer(rig)
        for byte in SPOPPeer.hello() + SPOPPeer.question(stream: 1) { try haproxy.peer.send([byte]) }
        try haproxy.peer.send(
            SPOPPeer.question(stream: 2) + SPOPPeer.frame(77, [1, 2]) + SPOPPeer.question(stream: 300))
        #expect(try haproxy.frame().type == 101)
        for stream in [1, 2, 300] as [UInt64] {
            #expect(try haproxy.acknowledgement(stream: stream)["field_authorization"] == .text("t1"))
        }
    }

    @Test("HAProxy gets cookies in one field with the caller's, or the removal of all")
    func cookies() throws {
        let rig = try AuthRequestRig { port in
            let login = Authenticator.scripted(port: port, trigger: .ahead, isAhead: true) { _, _, conversation in
                var jar = CookieJar()
                if let url = WebURL("http://127.0.0.1:\(port)/deep/login") {
                    _ = jar.store("sid=one; Path=/deep", from: url, now: conversation.now())
                }
                return Session(cookies: SessionCookies(jar))
            }
            return .bank(port: port, logins: [login])
        }
        let haproxy = try SPOPPeer.greeting(rig)
        #expect(
            try haproxy.ask("GET", "/deep/a", "cookie: a=1; sid=evil\r\n")
                == ["status": .number(200), "field_cookie": .text("sid=one; a=1")])
        #expect(
            try haproxy.ask("GET", "/other", "cookie: sid=mine\r\n")
                == ["status": .number(200), "field_cookie": .text("sid=mine")])
        #expect(
            try haproxy.ask("GET", "/other", "cookie: ;\r\n")
                == ["status": .number(200), "remove_cookie": .flag(true)])
        #expect(try haproxy.ask("GET", "/other") == ["status": .number(200)])
    }

    @Test("HAProxy gets the reason of a denial, with the status for its caller")
    func denial() throws {
        let rig = try AuthRequestRig { port in
            let login = Authenticator.scripted(port: port) { _, _, _ async throws(LoginFailure) in
                throw LoginFailure(.rejected, challenge: "bank", detail: "Die PIN ist f\u{E4}lsch.\n")
            }
            return .bank(port: port, logins: [login])
        }
        let haproxy = try SPOPPeer.greeting(rig)
        let variables = try haproxy.ask()
        #expect(variables["status"] == .number(502) && variables["code"] == .text("login-rejected"))
        #expect(variables["detail"] == .text("Die PIN ist f??lsch.?"))
        guard case .text(let document) = variables["document"] else { throw Peer.Problem(doing: "read the reply") }
        #expect(document.contains(#""status":502"#) && document.contains(#"Die PIN ist f\u00e4lsch.\n""#))
        #expect(document.utf8.allSatisfy { (0x20...0x7E).contains($0) })
    }

    @Test("HAProxy is admitted by the request in question")
    func admission() throws {
        let haproxy = try SPOPPeer.greeting(try rig())
        #expect(try haproxy.ask("TRACE")["code"] == .text("method-not-allowed"))
        #expect(try haproxy.ask("GET", "/a", "sec-fetch-site: cross-site\r\n")["code"] == .text("caller-not-allowed"))
        #expect(try haproxy.ask("GET", "/authority/a")["status"] == .number(200))
        #expect(
            try haproxy.ask("GET", "/a", "x: \(String(repeating: "x", count: 10_000))\r\n")["status"] == .number(200))
        #expect(try haproxy.ask("GET", "/a", "transfer-encoding: chunked\r\n")["status"] == .number(200))
    }

    @Test("HAProxy gets no session over TCP from an auth-request listener without users")
    func withoutUsers() throws {
        let rig = try AuthRequestRig({ port in .bank(port: port) }, users: nil)
        let haproxy = try SPOPPeer.greeting(rig)
        #expect(try haproxy.ask()["code"] == .text("caller-not-allowed"))
    }

    @Test("HAProxy is denied if its message identifies no request, and the connection goes on")
    func unclear() throws {
        let rig = try rig()
        let haproxy = try SPOPPeer.greeting(rig)
        let (method, target) = (("method", "GET"), ("target", "/a"))
        let fields = ("fields", "host: bank.example\r\n\r\n")
        let whole = [method, target, fields]
        let messages = [
            [], SPOPPeer.message("other", whole), SPOPPeer.message("authorize", []),
            SPOPPeer.message("authorize", [method, target]), SPOPPeer.message("authorize", whole + [method]),
            SPOPPeer.message("authorize", whole) + SPOPPeer.message("authorize", whole),
            SPOPPeer.message("authorize", [("method", "GET /b"), target, fields]),
            SPOPPeer.message("authorize", [method, ("target", "/a HTTP/1.1\r\nx: y"), fields]),
            SPOPPeer.message("authorize", [method, ("target", ""), fields]),
            SPOPPeer.message("authorize", [method, target, ("fields", fields.1 + "GET /b HTTP/1.1\r\n\r\n")]),
            SPOPPeer.message("authorize", [method, target, ("fields", "host: bank.example\r\n")]),
            SPOPPeer.message("authorize", [method, target, ("fields", "host: a\nhost: bank.example\r\n\r\n")]),
            SPOPPeer.message("authorize", [method, target, ("fields", "\r\n")]),
        ]
        for (index, message) in messages.enumerated() {
            try haproxy.peer.send(SPOPPeer.frame(3, message, stream: 7, number: 1))
            #expect(try haproxy.acknowledgement()["code"] == .text("bad-request"), "message \(index)")
        }
        #expect(rig.proxy.log.count == 0)
        #expect(try haproxy.ask()["status"] == .number(200))
    }

    @Test(
        "HAProxy is disconnected with the code of its protocol fault",
        arguments: [
            (SPOPPeer.hello(versions: nil), 5), (SPOPPeer.hello(versions: "1.0, 3.0"), 8),
            (SPOPPeer.hello(frameLimit: nil), 6), (SPOPPeer.hello(frameLimit: 255), 9),
            (SPOPPeer.hello(capabilities: nil), 7), (SPOPPeer.question(), 4), (SPOPPeer.frame(1, [240]), 4),
            (SPOPPeer.frame(1, [], flags: 0), 10), (SPOPPeer.frame(0, []), 10), ([0, 1, 0, 0], 3),
            (SPOPPeer.frame(2, []), 0),
        ] as [([UInt8], UInt64)])
    func faults(_ bytes: [UInt8], _ code: UInt64) throws {
        let haproxy = try SPOPPeer(try rig())
        try haproxy.peer.send(bytes)
        #expect(try haproxy.end() == code)
    }

    @Test("HAProxy sends one hello, and its frames obey the agreed size")
    func limits() throws {
        let twice = try SPOPPeer.greeting(try rig())
        try twice.peer.send(SPOPPeer.hello())
        #expect(try twice.end() == 4)
        let long = try SPOPPeer.greeting(try rig(), frameLimit: 256)
        try long.peer.send(SPOPPeer.question("GET", "/" + String(repeating: "a", count: 256)))
        #expect(try long.end() == 3)
    }

    @Test("HAProxy is denied if the fields exceed its frames, with the remedy")
    func tooLong() throws {
        let haproxy = try SPOPPeer.greeting(
            try rig(String(repeating: "t", count: 600)), frameLimit: 400)
        let variables = try haproxy.ask()
        #expect(variables["code"] == .text("login-failed"))
        guard case .text(let detail) = variables["detail"] else { throw Peer.Problem(doing: "read the detail") }
        #expect(detail.contains("tune.bufsize") && !detail.contains("ttt"))
        // The document did not fit in the frame.
        #expect(variables["document"] == nil)
    }

    @Test("HAProxy may send a health check")
    func healthCheck() throws {
        let haproxy = try SPOPPeer(try rig())
        try haproxy.peer.send(SPOPPeer.hello(isHealthCheck: true))
        #expect(try haproxy.frame().type == 101)
        try haproxy.peer.expectEnd()
    }

    @Test("HAProxy is disconnected after a timeout inside a frame")
    func slow() throws {
        let rig = try rig()
        let haproxy = try SPOPPeer.greeting(rig)
        #expect(try haproxy.ask()["status"] == .number(200))
        try haproxy.peer.send(Array(SPOPPeer.question().prefix(20)))
        rig.proxy.pass(.milliseconds(29_999))
        #expect(!haproxy.peer.hasNews)
        rig.proxy.pass(.milliseconds(1))
        #expect(try haproxy.end() == 2)
    }

    @Test("HAProxy is disconnected by a drain: an idle connection at once, another after its answer")
    func drain() throws {
        let gate = Gate()
        let rig = try AuthRequestRig { port in
            let login = Authenticator.scripted(port: port) { _, _, _ in
                await gate.pass()
                return .bearer("t")
            }
            return .bank(port: port, logins: [login])
        }
        let busy = try SPOPPeer.greeting(rig)
        try busy.peer.send(SPOPPeer.question())
        rig.proxy.wait("the login") { rig.proxy.log.count == 1 }
        let idle = try SPOPPeer.greeting(rig)
        #expect(try idle.ask("TRACE")["code"] == .text("method-not-allowed"))
        rig.proxy.server.drain {}
        #expect(try idle.end() == 0)
        gate.open()
        #expect(try busy.acknowledgement()["status"] == .number(200))
        #expect(try busy.end() == 0)
    }

    @Test("an ordinary listener accepts no frames of HAProxy")
    func ordinary() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port))
        let peer = try proxy.connect()
        try peer.send(SPOPPeer.hello())
        #expect(try peer.head().hasPrefix("HTTP/1.1 400 "))
    }
}

@Suite("Elements of SPOP")
struct SPOPElementTests {
    private func number(_ bytes: [UInt8]) throws(SPOPFault) -> UInt64 {
        var scanner = SPOPScanner(ByteRange(start: 0, end: bytes.count))
        let value = try scanner.number(in: bytes.span)
        #expect(scanner.isAtEnd)
        return value
    }

    @Test(
        "SPOP numbers are read at the limits of each length",
        arguments: [
            (0, [0]), (239, [239]), (240, [240, 0]), (2287, [255, 127]), (2288, [240, 128, 0]),
            (264_431, [255, 255, 127]), (264_432, [240, 128, 128, 0]),
        ] as [(UInt64, [UInt8])])
    func edges(_ value: UInt64, _ bytes: [UInt8]) throws {
        #expect(try number(bytes) == value)
        #expect(SPOPPeer.number(value) == bytes)
    }

    @Test("the largest SPOP number is read, and a larger or truncated one is a fault")
    func faults() throws {
        let largest = SPOPPeer.number(.max)
        #expect(try number(largest) == .max)
        var beyond = largest
        beyond[beyond.count - 1] += 1
        #expect(throws: SPOPFault.frameInvalid) { try number(beyond) }
        #expect(throws: SPOPFault.frameInvalid) { try number([UInt8](repeating: 255, count: 40)) }
        #expect(throws: SPOPFault.frameInvalid) { try number(largest.dropLast()) }
        #expect(throws: SPOPFault.frameInvalid) { try number([]) }
    }

    @Test("a SPOP frame is read once it is complete")
    func whole() throws {
        let bytes = SPOPPeer.question("POST", "/b?c", stream: 70_000, number: 3) + [0, 0]
        for count in 0..<bytes.count - 2 {
            #expect(try SPOPFrame.read(Array(bytes.prefix(count)).span, limit: 1000) == nil)
        }
        let frame = try #require(try SPOPFrame.read(bytes.span, limit: 1000))
        #expect(frame.kind == .notify && frame.stream == 70_000 && frame.number == 3)
        #expect(frame.length == bytes.count - 2 && frame.payload.end == frame.length)
        #expect(throws: SPOPFault.frameTooBig) { try SPOPFrame.read(bytes.span, limit: frame.length - 5) }
        let asked = try SPOPNotification.read(frame.payload, in: bytes.span)
        var head = ByteQueue()
        try asked.get().writeHead(in: bytes.span, to: &head)
        #expect(String(decoding: head.copy(), as: UTF8.self) == "POST /b?c HTTP/1.1\r\nhost: bank.example\r\n\r\n")
    }

    @Test("each type of SPOP value can be skipped, and a truncated value is a fault")
    func values() throws {
        let all: [[UInt8]] = [
            [0], [1], [17], [2, 5], [3, 240, 1], [4, 9], [5, 9], [6, 1, 2, 3, 4],
            [7] + [UInt8](repeating: 1, count: 16),
            [8, 2, 65, 66], [9, 1, 0],
        ]
        for value in all {
            var scanner = SPOPScanner(ByteRange(start: 0, end: value.count))
            _ = try scanner.value(in: value.span)
            #expect(scanner.isAtEnd, "\(value)")
            for end in 0..<value.count {
                var cut = SPOPScanner(ByteRange(start: 0, end: end))
                #expect(throws: SPOPFault.frameInvalid, "\(value) \(end)") { _ = try cut.value(in: value.span) }
            }
        }
        var unknown = SPOPScanner(ByteRange(start: 0, end: 1))
        #expect(throws: SPOPFault.frameInvalid) { _ = try unknown.value(in: [10].span) }
    }
}
