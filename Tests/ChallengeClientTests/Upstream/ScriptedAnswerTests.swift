// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import HTTPWire
import Testing

@testable import ChallengeClient

@Suite("The answer of an upstream, read from its bytes")
struct ScriptedAnswerTests {
    typealias Outcome = ScriptedClient.Outcome

    /// A request, all that the upstream sends before it closes, and the expected outcome.
    struct Script: Sendable, CustomTestStringConvertible {
        var request = Request.get
        let bytes: String
        let outcome: Outcome

        var testDescription: String { "\(request): \(bytes.debugDescription)" }
    }

    enum Request: Sendable {
        case get, head, upgrade
        /// A body of three bytes that has arrived.
        case post
        /// A body of three bytes that never arrives.
        case silentPost
        /// A body of three bytes that waits for 100.
        case waitingPost
        /// A GET on a connection that has carried another one.
        case getAgain
        /// A POST on such a connection.
        case postAgain
    }

    private static func script(
        _ bytes: String, to request: Request = .get, interims: [Int] = [], _ status: Int, _ end: ScriptedClient.End,
        _ body: String = "", trailers: [String] = []
    ) -> Script {
        let outcome = Outcome(interims: interims, status: status, body: body, trailers: trailers, end: end)
        return Script(request: request, bytes: bytes, outcome: outcome)
    }

    /// Returns a script whose answer is refused, or never comes.
    private static func refusal(
        _ bytes: String, to request: Request = .get, _ fault: WireErrorCode? = nil, setback: Transfer.Setback? = nil,
        interims: [Int] = [], status: Int = 0, body: String = "", as error: CurlError = .writeError
    ) -> Script {
        let outcome = Outcome(
            interims: interims, status: status, body: body, fault: fault, setback: setback, end: .failed(error))
        return Script(request: request, bytes: bytes, outcome: outcome)
    }

    private static let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    private static let late = "HTTP/1.1 408 Late\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    static let scripts: [Script] = [
        script(hello, 200, .kept, "hello"),
        script("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, .kept),
        script("HTTP/1.1 204 None\r\n\r\n", 204, .kept),
        script("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, .kept),
        script("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", to: .head, 200, .kept),
        script(chunked, to: .head, 200, .kept),
        script("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, .closed, "ok"),
        script("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, .closed, "ok"),
        // Chunks, and the fields after the last one.
        script("\(chunked)3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 200, .kept, "abcde"),
        script("\(chunked)1\r\na\r\n0\r\nX-Sum: 1\r\nHost: b\r\n\r\n", 200, .kept, "a", trailers: ["X-Sum: 1"]),
        refusal("\(chunked)3\r\nabcX", .chunkTerminatorInvalid, status: 200, body: "abc"),
        refusal("\(chunked)3\r\nab", status: 200, body: "ab", as: .partialFile),
        // The body ends with the connection.
        script("HTTP/1.1 200 OK\r\n\r\nall of it", 200, .closed, "all of it"),
        refusal("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", status: 200, body: "hello", as: .partialFile),
        // Interim heads.
        script("HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n\(hello)", interims: [103], 200, .kept, "hello"),
        script("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 102 On\r\n\r\n\(hello)", interims: [100, 102], 200, .kept, "hello"),
        refusal("HTTP/1.1 103 Early\r\n\r\n", interims: [103], as: .weirdServerReply),
        // Another protocol, asked for and not.
        script("HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n", to: .upgrade, 101, .switched),
        script(hello, to: .upgrade, 200, .closed, "hello"),
        refusal("HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n", .switchUnasked),
        // Bytes that are not a response.
        refusal("", as: .gotNothing),
        refusal("HTTP/1.1 2", as: .weirdServerReply),
        refusal("HTTP/2 200\r\n\r\n", .statusLineInvalid),
        refusal("\r\n\(hello)", .statusLineInvalid),
        refusal("HTTP/1.1 200 OK\nX: y\r\n\r\n", .bareLineFeed),
        // The answer comes early: the rest of the request's body is not sent, so only a complete one keeps the connection.
        script("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno", to: .silentPost, 401, .closed, "no"),
        script("HTTP/1.1 302 Away\r\nContent-Length: 0\r\n\r\n", to: .silentPost, 302, .closed),
        script(hello, to: .silentPost, 200, .closed, "hello"),
        script("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno", to: .post, 401, .kept, "no"),
        script(hello, to: .waitingPost, 200, .closed, "hello"),
        script("HTTP/1.1 100 Go\r\n\r\n\(hello)", to: .waitingPost, interims: [100], 200, .kept, "hello"),
        refusal("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n", to: .waitingPost, setback: .expectation),
        // 408 is about the rest of a connection, if it has rested and the request may go again.
        refusal(late, to: .getAgain, setback: .idleTimeout),
        script(late, 408, .closed, "late"),
        script(late, to: .postAgain, 408, .closed, "late"),
        script(hello, to: .getAgain, 200, .kept, "hello"),
        refusal("", to: .getAgain, as: .gotNothing),
    ]

    private static func run(_ script: Script, cutAt ends: [Int]) throws -> ScriptedClient {
        let client = try ScriptedClient()
        if script.request == .getAgain || script.request == .postAgain {
            client.begin(ExchangeRequest(method: .get, framing: .none))
            client.receive(hello.utf8)
            #expect(client.rest())
        }
        client.begin(script.request.request)
        switch script.request {
        case .post, .postAgain, .waitingPost: client.supply = ["abc"]
        case .get, .head, .upgrade, .silentPost, .getAgain: break
        }
        client.transfer.bodyAvailable()
        client.endTurn()
        let bytes = Array(script.bytes.utf8)
        var start = 0
        for end in ends {
            client.receive(bytes[start..<end])
            start = end
        }
        client.endInput()
        expect(client.machine.misuses, 0)
        return client
    }

    @Test("an answer means the same however it is cut", arguments: scripts)
    func cuts(_ script: Script) throws {
        let count = script.bytes.utf8.count
        var cuts: [[Int]] = [[count], Array(0...count)]
        for first in 0..<count { cuts.append([first, count]) }
        for cut in cuts {
            let client = try Self.run(script, cutAt: cut)
            var outcome = client.outcome
            // The unread bytes of a refused head are not compared.
            if case .failed = script.outcome.end { outcome.unread = "" }
            #expect(outcome == script.outcome, "cut at \(cut)")
        }
    }

    @Test("bytes after an answer are left unread, and the connection takes no other request")
    func after() throws {
        for head in [Self.hello, "HTTP/1.1 204 None\r\n\r\n", "\(Self.chunked)0\r\n\r\n"] {
            for extra in ["x", "HTTP/1.1 200 OK\r\n\r\n"] {
                let script = Script(bytes: head + extra, outcome: Outcome())
                let client = try Self.run(script, cutAt: [script.bytes.utf8.count])
                #expect(client.outcome.end == .closed && client.outcome.unread.hasSuffix(extra), "\(head), \(extra)")
                #expect(client.outcome.status != 0 && client.outcome.fault == nil)
            }
        }
        let handshake = "HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n"
        let script = Script(request: .upgrade, bytes: handshake + "hello", outcome: Outcome())
        let client = try Self.run(script, cutAt: [script.bytes.utf8.count])
        #expect(client.outcome.end == .switched && client.outcome.unread == "hello")
    }

    @Test("a body waits for 100, for the end of the wait, or for nothing, and goes as it comes")
    func sending() throws {
        let waiting = try ScriptedClient()
        waiting.supply = ["abc"]
        waiting.begin(ExchangeRequest(method: .put, framing: .length(3), expectsContinue: true))
        #expect(waiting.sent == "(head)" && waiting.hasWaited == false)
        waiting.receive("HTTP/1.1 103 Early\r\n\r\n".utf8)
        #expect(waiting.sent == "(head)")
        waiting.receive("HTTP/1.1 100 Go\r\n\r\n".utf8)
        #expect(waiting.sent == "(head)abc" && waiting.hasWaited == false)
        let impatient = try ScriptedClient()
        impatient.supply = ["abc"]
        impatient.begin(ExchangeRequest(method: .put, framing: .length(3), expectsContinue: true))
        impatient.endWait()
        #expect(impatient.sent == "(head)abc" && impatient.hasWaited == true)
        let eager = try ScriptedClient()
        eager.begin(ExchangeRequest(method: .put, framing: .length(6)))
        expect(eager.machine.isHeld, true)
        eager.supply = ["abc"]
        eager.transfer.bodyAvailable()
        #expect(eager.sent == "(head)abc")
        expect(eager.machine.isHeld, false)
        eager.supply = ["def"]
        eager.transfer.bodyAvailable()
        #expect(eager.sent == "(head)abcdef" && eager.transfer.upload.isComplete)
    }

    @Test("a body of unknown length goes in chunks, with its trailer fields after the last one")
    func chunks() throws {
        let client = try ScriptedClient()
        client.supply = ["abc", "0123456789abcdef", nil]
        client.trailers = ["X-A", "X B", "X-C"]
        client.begin(ExchangeRequest(method: .put, framing: .chunked))
        #expect(client.sent == "(head)3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX-A: t\r\nX-C: t\r\n\r\n")
        client.receive("HTTP/1.1 204 None\r\n\r\n".utf8)
        #expect(client.outcome.end == .kept && client.rest())
        // The next one has none of them.
        client.supply = [nil]
        client.trailers = []
        client.begin(ExchangeRequest(method: .put, framing: .chunked))
        #expect(client.sent.hasSuffix("(head)0\r\n\r\n"))
    }

    @Test("an answer that is refused stops the body, one that is welcome waits for its end")
    func early() throws {
        let refused = try ScriptedClient()
        refused.begin(ExchangeRequest(method: .put, framing: .length(6)))
        refused.endTurn()
        refused.receive("HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nn".utf8)
        refused.supply = ["abcdef"]
        refused.transfer.bodyAvailable()
        #expect(refused.sent == "(head)" && refused.outcome.end == .open)
        refused.receive("o.".utf8)
        #expect(refused.outcome.end == .closed && refused.outcome.body == "no.")
        let welcome = try ScriptedClient()
        welcome.begin(ExchangeRequest(method: .put, framing: .length(6)))
        welcome.endTurn()
        welcome.receive(Self.hello.utf8)
        #expect(welcome.outcome.end == .open && welcome.outcome.body == "hello")
        welcome.supply = ["abcdef"]
        welcome.transfer.bodyAvailable()
        #expect(welcome.sent == "(head)abcdef" && welcome.outcome.end == .kept)
    }
}

extension ScriptedAnswerTests.Request {
    fileprivate var request: ExchangeRequest {
        switch self {
        case .get, .getAgain: ExchangeRequest(method: .get, framing: .none)
        case .head: ExchangeRequest(method: .head, framing: .none)
        case .upgrade: ExchangeRequest(method: .get, framing: .none, isUpgrade: true)
        case .post, .silentPost, .postAgain: ExchangeRequest(method: .post, framing: .length(3))
        case .waitingPost: ExchangeRequest(method: .post, framing: .length(3), expectsContinue: true)
        }
    }
}
