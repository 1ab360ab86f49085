// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FakeServers
import HTTPTypes
import LoginExamples
import Secrets
import Testing

@Suite("The examples of the client, at faithful fakes")
struct ClientExampleTests {
    @Test("WebSEAL's form is filled in, and what is behind it is served")
    func webSEAL() async throws {
        try await withFake(.webSEAL) { _, fake in
            let client = try ChallengeClient()
            try client.registerChallengeHandler(WebSEALHandler(user: "ann", password: "demo"))
            for _ in 0..<3 {
                let response = try await client.send(to: "http://127.0.0.1:\(fake.port)/app/")
                #expect(try await response.text(upTo: 10_000).contains("\"principal\""))
            }
            #expect(fake.logins == ["ann ok"])
            await client.shutdown()
        }
    }

    @Test("WebSEAL's word on a wrong password is the end of it, after one attempt")
    func wrongPassword() async throws {
        try await withFake(.webSEAL) { _, fake in
            let client = try ChallengeClient()
            try client.registerChallengeHandler(WebSEALHandler(user: "ann", password: "wrong"))
            for _ in 0..<2 {
                let error = await #expect(throws: ClientError.self) {
                    try await client.send(to: "http://127.0.0.1:\(fake.port)/app/")
                }
                #expect(error?.loginFailure != nil)
            }
            #expect(fake.logins.count == 1)
            await client.shutdown()
        }
    }

    @Test("over TLS a server proves itself, by the authorities that the configuration names")
    func overTLS() async throws {
        try await withFake(.webSEALBehindTLS) { bank, fake in
            let address = "https://localhost:\(fake.port)/app/"
            for isTrusted in [true, false] {
                var configuration = ClientConfiguration()
                if isTrusted { configuration.connections.authorities = bank.folder.bytes(of: "ca.pem") }
                let client = try ChallengeClient(configuration)
                try client.registerChallengeHandler(WebSEALHandler(user: "ann", password: "demo"))
                if isTrusted {
                    let text = try await client.send(to: address).text(upTo: 10_000)
                    #expect(text.contains("\"principal\""))
                } else {
                    let error = await #expect(throws: ClientError.self) { try await client.send(to: address) }
                    #expect(error?.kind == .upstreamTLS)
                }
                await client.shutdown()
            }
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("containers of Java EE take the form of j_security_check", arguments: [FakeKind.jetty, .undertow, .liberty])
    func javaEE(_ kind: FakeKind) async throws {
        try await withFake(kind) { _, fake in
            let client = try ChallengeClient()
            try client.registerChallengeHandler(FormHandler { again in again ? nil : ("ann", "demo") })
            let response = try await client.send(to: "http://127.0.0.1:\(fake.port)/app/")
            #expect(try await response.text(upTo: 10_000).contains("\"principal\""))
            await client.shutdown()
        }
    }

    /// The handler of the original document, which looks at the page alone.
    private struct OriginalForm: RealmChallengeHandler {
        let realm = "SampleAppRealm"
        func isCustomResponse(_ response: ExaminedResponse) -> Bool { response.text.contains("j_security_check") }
        func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
            if challenge.isRepeated { return .submitFailure("The password is wrong.") }
            return .submitLoginForm(url: "j_security_check", parameters: ["j_username": "ann", "j_password": "demo"])
        }
    }

    @Test(
        "a redirect to the login page is followed for a handler of 7.1 as it stands",
        arguments: [FakeKind.jetty, .undertow, .liberty])
    func redirected(_ kind: FakeKind) async throws {
        try await withFake(kind) { _, fake in
            let client = try ChallengeClient()
            try client.registerChallengeHandler(OriginalForm())
            for _ in 0..<2 {
                let response = try await client.send(to: "http://127.0.0.1:\(fake.port)/app/")
                #expect(try await response.text(upTo: 10_000).contains("\"principal\""), "\(response.status)")
            }
            #expect(fake.logins.count == 1, "\(fake.logins)")
            await client.shutdown()
        }
    }
}

@Suite("The client's handshakes, at a real WebSocket server", .timeLimit(.minutes(10)))
struct ClientUpgradeTests {
    /// Has a token for every caller.
    private final class TokenHandler: ChallengeHandler {
        func canHandle(_ request: ChallengeRequest) -> Bool { request.challenge.isScheme("Bearer") }

        func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
            request.isRepeated ? nil : ChallengeResponse(credentials: Secret("Bearer token"))
        }
    }

    private func withServer(
        _ options: String..., body: (ChallengeClient, HTTPRequest) async throws -> Void
    ) async throws {
        try await withBank(startsDaemon: false) { bank in
            let server =
                options.isEmpty
                ? try await WebSocketServer(in: bank.folder)
                : try await WebSocketServer("--protected", in: bank.folder)
            let client = try ChallengeClient()
            var request = HTTPRequest(
                method: .get, scheme: "http", authority: "127.0.0.1:\(server.port)", path: "/")
            request.headerFields[.secWebSocketKey] = "dGhlIHNhbXBsZSBub25jZQ=="
            request.headerFields[.secWebSocketVersion] = "13"
            try await body(client, request)
            await client.shutdown()
            await server.stop()
        }
    }

    /// Returns a text message as a client sends it (RFC 6455 §5.2), its mask all zero.
    private func message(_ text: String) -> [UInt8] {
        [0x81, 0x80 | UInt8(text.utf8.count), 0, 0, 0, 0] + Array(text.utf8)
    }

    @Test("bytes go both ways, and the server's end is the end")
    func echo() async throws {
        try await withServer { client, request in
            guard case .switched(let tunnel) = try await client.upgrade(request, to: "websocket") else {
                Issue.record("no switch")
                return
            }
            // Of the sample key (RFC 6455 §1.3).
            #expect(tunnel.head.headerFields[.secWebSocketAccept] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            var received: [UInt8] = []
            var pieces = tunnel.incoming.makeAsyncIterator()
            for number in 0..<20 {
                try await tunnel.send(message("number \(number)"))
                let wanted = [0x81, UInt8("number \(number)".utf8.count)] + Array("number \(number)".utf8)
                while received.count < wanted.count, let piece = try await pieces.next() { received += piece }
                #expect(received == wanted)
                received = []
            }
            // Close (section 5.5.1), which is answered, and then the connection ends.
            try await tunnel.send([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8])
            while let piece = try await pieces.next() { received += piece }
            #expect(received == [0x88, 0x02, 0x03, 0xE8])
            tunnel.close()
            await #expect(throws: ClientError.self) { try await tunnel.send([0]) }
        }
    }

    @Test("a challenge on the handshake is answered as on any request")
    func challenged() async throws {
        try await withServer("--protected") { client, request in
            if case .response(let refused) = try await client.upgrade(request, to: "websocket") {
                #expect(refused.status == .unauthorized)
            } else {
                Issue.record("it switched")
            }
            client.registerChallengeHandler(TokenHandler())
            if case .response(let refused) = try await client.upgrade(request, to: "websocket") {
                Issue.record("it answered \(refused.status)")
            }
        }
    }

    @Test("what is still open ends with the client")
    func shutdown() async throws {
        try await withServer { client, request in
            guard case .switched(let tunnel) = try await client.upgrade(request, to: "websocket") else {
                Issue.record("no switch")
                return
            }
            let reading = Task { try await tunnel.incoming.reduce(0) { $0 + $1.count } }
            await client.shutdown()
            await #expect(throws: ClientError.self) { try await reading.value }
            await #expect(throws: ClientError.self) { try await tunnel.send([0]) }
        }
    }
}
