// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FakeServers
import HTTPTypes
import LoginExamples
import Secrets
import TestSupport
import Testing

@Suite("Handlers of challenges of HTTP", .timeLimit(.minutes(10)))
struct ChallengeHandlerTests {
    private let ann = LoginCredentials(username: "ann", password: "demo")

    @Test("Basic is answered at its location, and once for all requests")
    func basic() async throws {
        try await withDemo { demo in
            let login = ScriptedLogin("demo")
            demo.client.registerChallengeHandler(
                try DispatchChallengeHandler().register(BasicChallengeHandler(login), at: "127.0.0.1:*/basic/*"))
            for number in 0..<5 {
                #expect(try await demo.client.send(to: demo.url("/basic/\(number)")).status == .ok)
            }
            #expect(login.notes.all == ["Demo"])
        }
    }

    @Test("a wrong password has the login handler asked again, and is not sent a second time")
    func wrong() async throws {
        try await withDemo { demo in
            let login = ScriptedLogin("wrong", "demo")
            demo.client.registerChallengeHandler(BasicChallengeHandler(login))
            let response = try await demo.client.send(to: demo.url("/basic/"))
            #expect(response.status == .ok)
            #expect(login.notes.all == ["Demo", "Demo again"])
            #expect(demo.upstream.recorder.record.wrongAnswers["basic"] == 1)
        }
    }

    @Test("the same wrong password is sent once, whoever asks how often")
    func latched() async throws {
        try await withDemo { demo in
            demo.client.registerChallengeHandler(BasicChallengeHandler(ScriptedLogin("no", "no", "no", "no")))
            for _ in 0..<3 {
                let error = try await clientError { try await demo.client.send(to: demo.url("/basic/")) }
                #expect(error.loginFailure?.code == .latched)
            }
            #expect(demo.upstream.recorder.record.wrongAnswers["basic"] == 1)
        }
    }

    @Test("each realm has the login of its own, and keeps it beside the other's")
    func realms() async throws {
        try await withDemo { demo in
            demo.upstream.override(twoRealms)
            demo.client.registerChallengeHandler(
                try basicLogins(
                    at: "127.0.0.1:*/*",
                    realms: ["A": LoginCredentials(username: "a", password: "1"), "B": ann],
                    otherwise: ScriptedLogin()))
            for path in ["/a/1", "/b/1", "/a/2", "/b/2"] {
                #expect(try await demo.client.send(to: demo.url(path)).status == .noContent)
            }
            let answered = demo.upstream.recorder.record.transcript.filter { $0.status == 401 }
            #expect(answered.map(\.path) == ["/a/1", "/b/1"])
        }
    }

    @Test("a handler that gives up lets the challenge pass, and is not asked again at once")
    func givesUp() async throws {
        try await withDemo { demo in
            let login = ScriptedLogin()
            demo.client.registerChallengeHandler(BasicChallengeHandler(login))
            for _ in 0..<3 {
                let response = try await demo.client.send(to: demo.url("/basic/"))
                #expect(response.status == .unauthorized)
                #expect(response.head.headerFields[.wwwAuthenticate]?.contains("Demo") == true)
            }
            #expect(login.notes.all == ["Demo"])
        }
    }

    @Test("a challenge of another scheme is never answered with Basic")
    func otherScheme() async throws {
        try await withDemo { demo in
            let login = ScriptedLogin("demo")
            demo.client.registerChallengeHandler(BasicChallengeHandler(login))
            let response = try await demo.client.send(to: demo.url("/digest/"))
            #expect(response.status == .unauthorized)
            #expect(login.notes.all.isEmpty)
        }
    }

    @Test("a more specific pattern hides a less specific one, also where its handler cannot")
    func hiding() async throws {
        try await withDemo { demo in
            let login = ScriptedLogin("demo")
            let dispatcher = try DispatchChallengeHandler()
                .register(NegotiateChallengeHandler(office: NoTickets()), at: "127.0.0.1:*/basic/secret/*")
                .register(BasicChallengeHandler(login), at: "127.0.0.1:*/*")
            demo.client.registerChallengeHandler(dispatcher)
            #expect(try await demo.client.send(to: demo.url("/basic/secret/a")).status == .unauthorized)
            #expect(try await demo.client.send(to: demo.url("/basic/a")).status == .ok)
        }
    }

    @Test("an unregistered handler answers no more, and its session is gone")
    func unregistered() async throws {
        try await withDemo { demo in
            let basic = BasicChallengeHandler(ScriptedLogin("demo"))
            let dispatcher = try DispatchChallengeHandler().register(basic, at: "127.0.0.1:*/*")
            demo.client.registerChallengeHandler(dispatcher)
            #expect(try await demo.client.send(to: demo.url("/basic/")).status == .ok)
            try dispatcher.unregister(basic, at: "127.0.0.1:*/elsewhere")
            #expect(try await demo.client.send(to: demo.url("/basic/")).status == .ok)
            try dispatcher.unregister(basic, at: "127.0.0.1:*/*")
            #expect(try await demo.client.send(to: demo.url("/basic/")).status == .unauthorized)
            try dispatcher.register(BasicChallengeHandler(ScriptedLogin("demo")), at: "127.0.0.1:*/*")
            #expect(try await demo.client.send(to: demo.url("/basic/")).status == .ok)
            demo.client.unregisterChallengeHandler(dispatcher)
            #expect(try await demo.client.send(to: demo.url("/basic/")).status == .unauthorized)
        }
    }

    @Test("a dispatcher can stand in another one")
    func nested() async throws {
        try await withDemo { demo in
            let inner = try DispatchChallengeHandler()
                .register(BasicChallengeHandler(ScriptedLogin("demo")), at: "127.0.0.1:*/basic/*")
            demo.client.registerChallengeHandler(try DispatchChallengeHandler().register(inner, at: "*:*/*"))
            #expect(try await demo.client.send(to: demo.url("/basic/a")).status == .ok)
        }
    }

    @Test("a dispatcher registered as any handler chooses by location all the same")
    func anyHandler() async throws {
        try await withDemo { demo in
            let handler: any ChallengeHandler = try DispatchChallengeHandler()
                .register(BasicChallengeHandler(ScriptedLogin("demo")), at: "127.0.0.1:*/basic/*")
            demo.client.registerChallengeHandler(handler)
            #expect(try await demo.client.send(to: demo.url("/basic/a")).status == .ok)
            demo.client.unregisterChallengeHandler(handler)
            #expect(try await demo.client.send(to: demo.url("/basic/a")).status == .unauthorized)
        }
    }

    @Test("dispatchers that contain each other are asked once each, and find the handler that can answer")
    func circle() async throws {
        try await withDemo { demo in
            let (one, other) = (DispatchChallengeHandler(), DispatchChallengeHandler())
            try one.register(other, at: "127.0.0.1:*/*").register(one, at: "127.0.0.1:*/*")
            try other.register(one, at: "127.0.0.1:*/*")
            demo.client.registerChallengeHandler(one)
            // Neither handler can answer, and endless mutual dispatch would crash the program.
            #expect(try await demo.client.send(to: demo.url("/basic/a")).status == .unauthorized)
            try one.register(BasicChallengeHandler(ScriptedLogin("demo")), at: "127.0.0.1:*/*")
            #expect(try await demo.client.send(to: demo.url("/basic/a")).status == .ok)
        }
    }

    @Test("a request with an Authorization of its own is not answered for")
    func ownAuthorization() async throws {
        try await withDemo { demo in
            let login = ScriptedLogin("demo")
            demo.client.registerChallengeHandler(BasicChallengeHandler(login))
            let response = try await demo.client.send(
                to: demo.url("/basic/"), fields: [.authorization: "Basic eDp5"])
            #expect(response.status == .unauthorized)
            #expect(login.notes.all.isEmpty)
        }
    }

    @Test("a credential given to one server goes to no other")
    func otherServer() async throws {
        let other = FakeUpstream()
        try other.start()
        defer { other.stop() }
        try await withDemo { demo in
            let login = ScriptedLogin("demo")
            demo.client.registerChallengeHandler(BasicChallengeHandler(login))
            _ = try await demo.client.send(to: demo.url("/basic/"))
            let seen = Notes()
            other.override { request in
                seen.add(request.field("Authorization") ?? "none")
                return nil
            }
            _ = try await demo.client.send(to: "http://127.0.0.1:\(other.port)/basic/")
            #expect(seen.all.first == "none")
        }
    }

    @Test("Negotiate sends a token of its own with each request, and gives up without a ticket")
    func negotiate() async throws {
        try await withDemo { demo in
            demo.upstream.override { request in
                let token = request.authorization("Negotiate")
                return token == nil
                    ? FakeResponse(401, fields: [("WWW-Authenticate", "Negotiate")])
                    : FakeResponse(204, fields: [("X-Token", token ?? "")])
            }
            let none = NegotiateChallengeHandler(office: NoTickets())
            demo.client.registerChallengeHandler(none)
            #expect(try await demo.client.send(to: demo.url("/")).status == .unauthorized)
            demo.client.unregisterChallengeHandler(none)
            demo.client.registerChallengeHandler(NegotiateChallengeHandler(office: CountedTickets()))
            let name = try #require(HTTPField.Name("X-Token"))
            var tokens: Set<String> = []
            for _ in 0..<3 {
                let response = try await demo.client.send(to: demo.url("/"))
                #expect(response.status == .noContent)
                tokens.insert(response.head.headerFields[name] ?? "")
            }
            #expect(tokens.count == 3)
        }
    }
}

/// Two realms side by side, each with a user of its own.
@Sendable private func twoRealms(_ request: FakeRequest) -> FakeResponse? {
    // a:1 and ann:demo
    let (realm, right) = request.path.hasPrefix("/a/") ? ("A", "YTox") : ("B", "YW5uOmRlbW8=")
    guard request.field("Authorization") == "Basic \(right)" else {
        return FakeResponse(401, fields: [("WWW-Authenticate", "Basic realm=\"\(realm)\", charset=\"UTF-8\"")])
    }
    return FakeResponse(204)
}

/// Login of ann with these passwords, in order; then it gives up.
private struct ScriptedLogin: LoginHandler {
    let notes = Notes()
    private let passwords: [String]

    init(_ passwords: String...) { self.passwords = passwords }

    func credentials(for request: ChallengeRequest) async throws -> LoginCredentials? {
        notes.add((request.realm ?? "") + (request.isRepeated ? " again" : ""))
        guard notes.count <= passwords.count else { return nil }
        return LoginCredentials(username: "ann", password: passwords[notes.count - 1])
    }
}

/// Ticket provider of a machine without Kerberos.
private struct NoTickets: TicketProvider {
    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        throw TicketError(.unsupported, reason: "there is no GSS-API")
    }
}

/// Tickets with numbered tokens.
private final class CountedTickets: TicketProvider, Ticket {
    private let notes = Notes()
    let lifetime: Int64 = 600

    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket { self }

    func token() throws(TicketError) -> TicketToken {
        notes.add("token")
        return TicketToken(bytes: Array("\(notes.count)".utf8))
    }
}
