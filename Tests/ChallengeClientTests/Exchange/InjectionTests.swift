// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import ChallengeClient
@testable import ChallengeHandling

@Suite("Values of a credential in an exchange's request and response")
struct InjectionTests {
    private static let secret = "s3cr3t-key"

    private static func values(
        query: Bool = false, path: Bool = false, body: Bool = false, cleansPages: Bool = false, secret: String = secret
    ) -> RequestInjections {
        RequestInjections(
            parameters: query ? [.init(name: Array("api_key".utf8), value: Secret(secret))] : [],
            path: path ? Secret("/bot" + secret) : nil,
            members: body ? [BodyMember(names: [Array("key".utf8)], value: Secret(secret))] : [],
            secrets: [Secret(secret)], cleansPages: cleansPages)
    }

    /// Returns a rig whose route injects the values, and perhaps has another login.
    private func rig(
        _ values: RequestInjections, logins: [Authenticator] = [], signer: (any RequestSigner)? = nil,
        replay: ReplayTiers = ReplayTiers(memory: 4 * 1024 * 1024)
    ) throws -> ExchangeRig {
        let login = Authenticator(
            name: "key", trigger: .ahead, isAhead: true, key: Self.key("key"), credentials: [], isShareable: false,
            changesBodies: values.changesBodies,
            makeLogin: { _ in InjectionLogin(challenge: "key", credential: "key", fields: []) })
        let rig = try ExchangeRig(logins: [login] + logins, replay: replay)
        var session = Session()
        session.injections = values
        session.signer = signer
        _ = rig.services.gate.adopt(Self.key("key"), session, establishedAt: ExchangeRig.now)
        rig.caller.fields = [("Content-Type", "application/json")]
        return rig
    }

    private static func key(_ name: String) -> SessionKey {
        SessionKey(origin: Origin(scheme: .http, host: "127.0.0.1", port: 1), challenge: name, credential: name)
    }

    private func line(_ stream: FakeStream?) -> String { stream?.head.components(before: "\r\n") ?? "" }

    // MARK: Requests

    @Test("path and query are sent with the values, in place of what the caller wrote for them")
    func target() throws {
        let rig = try rig(Self.values(query: true, path: true))
        rig.get("/getMe?api%5Fkey=mine&x=1")
        #expect(line(rig.stream) == "GET /bots3cr3t-key/getMe?x=1&api_key=s3cr3t-key HTTP/1.1")
        rig.stream?.answerWhole("200 OK")
        rig.settle()
        // Nothing of it is left for the next request of the connection.
        rig.get("/x")
        #expect(line(rig.stream) == "GET /bots3cr3t-key/x?api_key=s3cr3t-key HTTP/1.1")
    }

    @Test("a request for another protocol is sent with the values, too")
    func upgrade() throws {
        let rig = try rig(Self.values(query: true, path: true))
        rig.begin(ExchangeRequest(method: .get, framing: .none, isUpgrade: true), "/chat")
        #expect(line(rig.stream) == "GET /bots3cr3t-key/chat?api_key=s3cr3t-key HTTP/1.1")
    }

    @Test("a route without values sends the caller's own target and body")
    func none() throws {
        let rig = try ExchangeRig()
        rig.post("{}")
        #expect(line(rig.stream) == "POST / HTTP/1.1" && rig.stream?.body == "{}")
    }

    @Test("a path with dot segments is answered locally, and nothing is sent")
    func dotSegments() throws {
        let rig = try rig(Self.values(path: true))
        rig.get("/%2e%2e/admin")
        #expect(rig.caller.error?.kind == .requestUnfit)
        #expect(rig.caller.error?.detail.contains(Self.secret) == false)
        #expect(rig.sendings == 0)
    }

    @Test("a JSON body is read whole, and sent with the member and its new length")
    func body() throws {
        let rig = try rig(Self.values(body: true))
        rig.post(#"{"key":"mine","a":1}"#, isComplete: false)
        #expect(rig.sendings == 0)
        #expect(rig.caller.takeEvents() == ["wants body"])
        rig.exchange.receiveBodyEnd()
        rig.settle()
        #expect(rig.stream?.body == #"{"a":1,"key":"s3cr3t-key"}"#)
        #expect(rig.stream?.head.hasSuffix("Content-Length: 26\r\n\r\n") == true)
        #expect(rig.stream?.isBodyComplete == true || rig.stream?.transfer.upload.isComplete == true)
    }

    @Test("a session that ends while the body is read is established again, and nothing is sent without the value")
    func sessionEnds() throws {
        let rig = try rig(Self.values(body: true))
        rig.post(#"{"key":"mine"}"#, isComplete: false)
        #expect(rig.caller.takeEvents() == ["wants body"])
        rig.services.gate.change { _ = $0.sessions.drop { _ in true } }
        rig.exchange.receiveBodyEnd()
        rig.settle()
        // The rig's store does not have the credential.
        #expect(rig.sendings == 0)
        #expect(rig.exchange.awaitedLogin == "key")
    }

    @Test("the digest of one body is not taken for that of the next, if the first one was never signed")
    func digestOfAnother() {
        var body = ExchangeBody()
        func begin(_ text: String) {
            let request = ExchangeRequest(method: .post, framing: .length(UInt64(text.utf8.count)))
            body.begin(request, keeping: ReplayTiers(memory: 1024), mayNeedAgain: true, spool: nil)
            body.append(text.utf8.span)
            body.complete()
        }
        begin("one")
        let isRead = body.beginReading(by: [BodyContent()])
        let step = body.readMore()
        #expect(isRead && step == .done)
        #expect(body.readings == [BodyReading(.content, Array("one".utf8))])
        begin("two")
        #expect(body.readings == nil)
    }

    @Test("a reason phrase that holds a value is left out")
    func reason() throws {
        let rig = try rig(Self.values(query: true))
        rig.get()
        rig.stream?.answerWhole("404 No handler for /?api_key=s3cr3t-key")
        rig.settle()
        #expect(rig.caller.takeEvents().allSatisfy { !$0.contains(Self.secret) })
    }

    @Test("no part of a page is asked for where pages are cleaned")
    func ranges() {
        let session = { (cleans: Bool) in
            var session = Session()
            session.injections = Self.values(query: true, cleansPages: cleans)
            return SessionFields([session], limitsCodings: false)
        }
        let names = ["Range", "If-Range", "If_Range"].map { Array($0.utf8) }
        for name in names {
            let kind = FieldName(foldingUnderscoresIn: name.span)
            let (isLeftOut, isKept) = (
                session(true).override(kind, named: name.span), !session(false).override(kind, named: name.span)
            )
            #expect(isLeftOut && isKept)
        }
    }

    @Test("a chunked body becomes one of known length, and an empty one stays empty")
    func chunked() throws {
        let first = try rig(Self.values(body: true))
        first.post("{}", framing: .chunked)
        #expect(first.stream?.body == #"{"key":"s3cr3t-key"}"#)
        #expect(first.stream?.head.contains("Content-Length: 20\r\n") == true)
        #expect(first.stream?.head.contains("Transfer-Encoding") == false)
        let second = try rig(Self.values(body: true))
        second.post("", framing: .chunked)
        #expect(second.sendings == 1)
        #expect(second.stream?.body.isEmpty == true)
    }

    @Test("a request without a body goes as it is")
    func bodiless() throws {
        let rig = try rig(Self.values(body: true))
        rig.get()
        #expect(rig.sendings == 1)
    }

    @Test("a body that takes no value is answered locally before any of it is sent")
    func unfit() throws {
        for (fields, body) in [
            ([("Content-Type", "text/plain")], "{}"), ([("Content-Type", "application/json")], "{"),
            ([("Content-Type", "application/json"), ("Content-Encoding", "gzip")], "{}"), ([], "{}"),
        ] as [([(StaticString, String)], String)] {
            let rig = try rig(Self.values(body: true))
            rig.caller.fields = fields.map { (name: $0.0, value: $0.1) }
            rig.post(body)
            #expect(rig.caller.error?.kind == .requestUnfit)
            #expect(rig.sendings == 0)
        }
    }

    @Test("a body that is too long to be changed is refused while nothing of it was sent")
    func tooLong() throws {
        let limit = RequestInjections.bodyLimit
        // A body of known length is refused at once.
        let known = try rig(Self.values(body: true))
        known.post("{", framing: .length(UInt64(limit) + 1), isComplete: false)
        #expect(known.caller.error?.kind == .bodyNotReplayable)
        // A body in chunks is refused when it exceeds the limit.
        let chunked = try rig(Self.values(body: true))
        chunked.post("{\"a\":\"", framing: .chunked, isComplete: false)
        for _ in 0..<20 where chunked.caller.error == nil {
            chunked.send(String(repeating: "x", count: 64 * 1024))
            chunked.settle()
        }
        #expect(chunked.caller.error?.kind == .bodyNotReplayable)
        // A body longer than the upstream's `replay` is refused.
        let small = try rig(Self.values(body: true), replay: ReplayTiers(memory: 16))
        small.post("{\"a\":\"0123456789\"}")
        #expect(small.caller.error?.kind == .bodyNotReplayable)
        for rig in [known, chunked, small] {
            #expect(rig.sendings == 0)
            #expect(rig.caller.error?.detail.contains("512 KiB") == true)
        }
    }

    @Test("after a login the request is sent again with the same values")
    func replay() throws {
        let login = HeldLogin()
        let corp = login.authenticator("corp", detector: NamedDetector(name: "corp"))
        let rig = try rig(Self.values(query: true, body: true), logins: [corp])
        _ = rig.services.gate.adopt(Self.key("corp"), .named("corp"), establishedAt: ExchangeRig.now)
        rig.post(#"{"a":1}"#)
        let first = rig.stream
        first?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.sendings == 2)
        #expect(rig.stream?.body == #"{"a":1,"key":"s3cr3t-key"}"#)
        #expect(rig.stream?.body == first?.body && line(rig.stream) == line(first))
        #expect(line(first) == "POST /?api_key=s3cr3t-key HTTP/1.1")
    }

    @Test("a session with other values changes the caller's own body anew")
    func changedValues() throws {
        let login = HeldLogin()
        let corp = login.authenticator("corp", detector: NamedDetector(name: "corp"))
        let rig = try rig(Self.values(body: true), logins: [corp])
        _ = rig.services.gate.adopt(Self.key("corp"), .named("corp"), establishedAt: ExchangeRig.now)
        rig.post("{}")
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        var session = Session()
        session.injections = Self.values(body: true, secret: "another")
        _ = rig.services.gate.adopt(Self.key("key"), session, establishedAt: ExchangeRig.now, replacing: true)
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.stream?.body == #"{"key":"another"}"#)
    }

    @Test("a signer sees the target and the digest of the body as they are sent")
    func signed() throws {
        let signer = NotingSigner()
        let rig = try rig(Self.values(query: true, body: true), signer: signer)
        rig.post("{}")
        #expect(rig.stream?.body == #"{"key":"s3cr3t-key"}"#)
        #expect(rig.stream?.head.contains("X-Signed: /?api_key=s3cr3t-key {\"key\":\"s3cr3t-key\"}\r\n") == true)
    }

    @Test("an auth request is refused, as only fields reach the other proxy")
    func authRequest() throws {
        let rig = try rig(Self.values(query: true))
        rig.begin(ExchangeRequest(method: .get, framing: .none, isAuthRequest: true))
        #expect(rig.caller.takeEvents().contains { $0.hasPrefix("failed") })
        #expect(rig.caller.error?.detail.contains("ordinary listener") == true)
    }

    // MARK: Responses

    @Test("addresses come back without the values, and other fields without the secret")
    func fields() throws {
        let rig = try rig(Self.values(query: true, path: true))
        rig.get("/a")
        rig.stream?.answerWhole(
            "302 s3cr3t-key", "Location: /bots3cr3t-key/b?api_key=s3cr3t-key&x=1",
            "Link: </bots3cr3t-key/2?api%5fkey=s3cr3t%2Dkey>; rel=next", "X-Debug: GET /bots3cr3t%2dkey/a",
            "ETag: \"x\"",
            "Set-Cookie: a=b; Path=/bots3cr3t-key/", body: "s3cr3t-key")
        rig.settle()
        let fields = rig.caller.head
        #expect(
            fields.contains(
                "\r\nLocation: /b?x=1\r\nLink: </2>; rel=next\r\nX-Debug: GET /bot************/a\r\nETag: \"x\"\r\n"))
        #expect(fields.contains("\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 10\r\n"))
        // Bodies change only if the configuration asks for that.
        #expect(rig.caller.takeEvents() == ["head 302", "body s3cr3t-key", "ended"])
    }

    @Test("a page is delivered without the secret, also if that comes in two pieces")
    func page() throws {
        let rig = try rig(Self.values(query: true, cleansPages: true))
        rig.get()
        rig.stream?.answer(
            "200 OK", "Content-Type: text/html; charset=utf-8", "Content-Length: 24", "Digest: x", body: "you: s3cr3")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body you: "])
        #expect(!rig.caller.head.contains("Digest"))
        rig.stream?.send("t-key. bye s3c")
        rig.settle()
        rig.stream?.end()
        rig.settle()
        #expect(rig.caller.takeEvents().joined() == "body **********. bye s3cwholeended")
    }

    @Test("what was held back at the end of a page waits for a caller without room")
    func heldEnd() throws {
        let rig = try rig(Self.values(query: true, cleansPages: true))
        rig.get()
        rig.stream?.answer("200 OK", "Content-Type: application/json", body: "\"s3cr3t-k")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body \""])
        rig.caller.takesBody = false
        rig.stream?.end()
        rig.settle()
        #expect(rig.caller.takeEvents() == [])
        rig.caller.takesBody = true
        rig.exchange.resumeResponse()
        rig.settle()
        #expect(rig.caller.takeEvents() == ["body s3cr3t-k", "ended"])
    }

    @Test(
        "a page of another type, or with a content coding, passes as it is",
        arguments: [
            "Content-Type: image/png", "Content-Type: text/html\r\nContent-Encoding: gzip", "X: y",
        ])
    func otherPages(fields: String) throws {
        let rig = try rig(Self.values(query: true, cleansPages: true))
        rig.get()
        rig.stream?.answerWhole("200 OK", fields, body: "s3cr3t-key")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body s3cr3t-key", "ended"])
    }

    @Test("an interim response that names the secret is left out, and others pass")
    func interims() throws {
        let rig = try rig(Self.values(query: true))
        rig.get()
        rig.stream?.answer("103 Early Hints", "Link: </style.css?api_key=s3cr3t-key>")
        rig.stream?.answer("103 Early Hints", "Link: </style.css>")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["interim 103"])
    }
}

/// Signer that covers the target and the body.
private final class NotingSigner: RequestSigner {
    let names: [HTTPField.Name] = [HTTPField.Name("X-Signed")].compactMap(\.self)
    let learnsFrom: [HTTPField.Name]? = []

    func learn(status: Int, fields: HTTPFields, target: String) {}

    func bodyReader(for target: String) -> (any BodyReader)? { BodyContent() }

    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        guard case .read(let readings) = request.body, let reading = readings.first, let name = names.first else {
            return SignedFields()
        }
        return SignedFields([InjectedField(name: name, value: Secret(Array("\(request.target) ".utf8) + reading.bytes))]
        )
    }
}

extension String {
    /// Returns the text before the first `separator`.
    fileprivate func components(before separator: String) -> String {
        String(firstRange(of: separator).map { self[..<$0.lowerBound] } ?? self[...])
    }
}
