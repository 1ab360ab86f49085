// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("The login of a gateway's own handler")
struct HandledGatewayTests {
    /// Handler that recognizes a login page by its text.
    private struct Handler: GatewayChallengeHandler {
        let gatewayName = "own"

        func canHandleResponse(_ response: ExaminedResponse) -> Bool { response.text == "log in" }

        func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
            challenge.isRepeated ? .cancel(reason: "wrong") : .submitLoginForm(url: "/in", parameters: ["pin": "1"])
        }
    }

    private func step(_ method: HTTPRequest.Method, _ path: String, _ text: String) -> ScriptedStep {
        ScriptedStep(method, "https://h\(path)", .success(SideResponse(status: 200, body: Array(text.utf8))))
    }

    /// Returns a login for a request that met the page at `/app` of an upstream at `/`.
    private func login() -> HandledGatewayLogin {
        let origin = Origin(scheme: .https, host: "h")
        let met = ExaminedResponse(
            status: 200, fields: [:], body: Array("log in".utf8), url: WebURL(origin: origin, path: "/app"))
        return HandledGatewayLogin(
            gateway: HandledGateway(Handler(), caller: DirectCaller()), met: met, origin: origin,
            base: WebURL(origin: origin, path: "/"), target: nil)
    }

    @Test("a page that only a caller chose does not reject a gateway's answer")
    func chosenByCaller() async {
        let gate = LocalGate()
        for _ in 0..<2 {
            let steps = [
                step(.get, "/", "news"), step(.get, "/app", "log in"), step(.post, "/in", "hello"),
                step(.get, "/app", "log in"),
            ]
            let failure = await LoginRig(steps, latches: gate).lose(login())
            #expect(failure.code == .failed && !failure.isCancelled)
        }
    }

    @Test("the upstream's own page after the form rejects a gateway's answer, which is not sent again")
    func configured() async {
        let gate = LocalGate()
        let page = step(.get, "/", "log in")
        let failure = await LoginRig([page, step(.post, "/in", "hello"), page], latches: gate).lose(login())
        #expect(failure.isCancelled)
        let second = await LoginRig([page], latches: gate).lose(login())
        #expect(second.code != .failed)
    }
}

@Suite("Login forms of handlers")
struct LoginFormTests {
    private func request(_ answer: GatewayAnswer, from page: String = "https://a.example/app/login?x") throws
        -> SideRequest?
    {
        guard case .submitForm(let form) = answer else { return nil }
        return form.request(from: ExaminedResponse(status: 200, url: try #require(WebURL(page))))
    }

    @Test("a login form is sent with POST and a timeout of 10 000 ms by default")
    func defaults() throws {
        let request = try #require(try request(.submitLoginForm(url: "/in", parameters: ["a": "1 2", "b": "ä"])))
        #expect(request.method == .post)
        #expect(request.timeout == .milliseconds(10_000))
        #expect(request.body?.revealText() == "a=1+2&b=%C3%A4")
        #expect(request.fields[.contentType] == "application/x-www-form-urlencoded")
    }

    @Test("a login form's timeout of zero or less is the default", arguments: [0, -1, 3000])
    func timeout(milliseconds: Int) throws {
        let request = try #require(try request(.submitLoginForm(url: "/in", timeout: .milliseconds(milliseconds))))
        #expect(request.timeout == .milliseconds(milliseconds > 0 ? milliseconds : 10_000))
    }

    @Test("a login form with GET appends its parameters to the query")
    func get() throws {
        let request = try #require(
            try request(.submitLoginForm(url: "in?a=0", parameters: ["b": "1"], method: .get)))
        #expect("\(request.url)" == "https://a.example/app/in?a=0&b=1")
        #expect(request.body == nil)
    }

    @Test(
        "a login form's address is absolute or relative to the page",
        arguments: [
            ("in", "https://a.example/app/in"), ("/in", "https://a.example/in"), ("../in", "https://a.example/in"),
            ("https://b.example/in", "https://b.example/in"), ("", "https://a.example/app/login?x"),
        ])
    func addresses(url: String, meant: String) throws {
        #expect(try request(.submitLoginForm(url: url)).map { "\($0.url)" } == meant)
    }

    @Test("a login form sends its headers, and allows only POST and GET")
    func headersAndMethods() throws {
        let request = try request(.submitLoginForm(url: "/in", headers: [.acceptLanguage: "de"]))
        #expect(request?.fields[.acceptLanguage] == "de")
        #expect(try self.request(.submitLoginForm(url: "/in", method: .put)) == nil)
    }
}

@Suite("Answers of handlers that a server has accepted")
struct AcceptedAnswerTests {
    private struct Ann: LoginHandler {
        func credentials(for request: ChallengeRequest) async throws -> LoginCredentials? {
            LoginCredentials(username: "ann", password: "right")
        }
    }

    private static let demand: HTTPFields = [.wwwAuthenticate: "Basic realm=\"r\""]

    private func step(_ path: String, _ hasAnswer: Bool, _ status: Int) -> ScriptedStep {
        let fields = status == 401 ? Self.demand : [:]
        return ScriptedStep(.get, "https://h\(path)", .success(SideResponse(status: status, fields: fields))) {
            ($0.fields[.authorization] != nil) == hasAnswer
        }
    }

    private func logIn(
        _ path: String, _ steps: [ScriptedStep], _ gate: LocalGate, _ book: AnswerCache
    ) async throws -> Session {
        let challenges = HandledChallenges(
            BasicChallengeHandler(Ann()), name: "own", caller: DirectCaller())
        let url = WebURL(origin: Origin(scheme: .https, host: "h"), path: path)
        let login = HandledChallengesLogin(
            challenges: challenges, answers: book, met: ExaminedResponse(status: 401, fields: Self.demand, url: url),
            target: nil)
        return try await LoginRig(steps, latches: gate).logIn(login)
    }

    @Test("a handler's login binds connections if its answers do, or may in future")
    func handlerBinds() {
        struct NoTickets: TicketProvider {
            func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
                throw TicketError(.unknown, reason: "no tickets")
            }
        }
        let origin = Origin(scheme: .https, host: "h")
        func binds(_ handler: any ChallengeHandler) -> Bool {
            HandledChallenges(handler, name: "own", caller: DirectCaller())
                .login(at: origin, answers: AnswerCache()).bindsConnections
        }
        #expect(binds(NegotiateChallengeHandler(office: NoTickets())))
        #expect(binds(DispatchChallengeHandler()))
        #expect(!binds(BasicChallengeHandler(Ann())))
    }

    @Test("an answer that one resource refuses, but another accepts, is not recorded as rejected")
    func forbidden() async throws {
        let (gate, book) = (LocalGate(), AnswerCache())
        _ = try await logIn("/a", [step("/a", true, 200)], gate, book)
        let confirmed = [step("/admin", true, 401), step("/a", false, 401), step("/a", true, 200)]
        _ = try await logIn("/admin", confirmed, gate, book)
        _ = try await logIn("/b", [step("/b", true, 200)], gate, book)
    }

    @Test("an answer that is refused where it was accepted is rejected, and not sent again")
    func changed() async throws {
        let (gate, book) = (LocalGate(), AnswerCache())
        _ = try await logIn("/a", [step("/a", true, 200)], gate, book)
        let refused = [step("/admin", true, 401), step("/a", false, 401), step("/a", true, 401)]
        for steps in [refused, []] {
            await #expect(throws: LoginFailure.self) { try await logIn("/admin", steps, gate, book) }
        }
    }
}
