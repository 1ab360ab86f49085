// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Security checks that a resource names itself")
struct ResourceCheckTests {
    private static let server = "https://mfp.example.com"
    private static let resource = "\(server)/ctx/apps/services/api/Shop/android/query"
    private static let json: HTTPFields = [.contentType: "application/json"]
    private static let composite: HTTPFields = [.wwwAuthenticate: "WL-Composite-Challenge"]
    private static let instance = HTTPField.Name("WL-Instance-Id") ?? .from

    private func response(
        _ status: Int, _ fields: HTTPFields, _ body: String?, method: HTTPRequest.Method = .get,
        at url: String = Self.resource
    ) throws -> ExaminedResponse {
        ExaminedResponse(
            status: status, fields: fields, body: body.map { Array($0.utf8) }, method: method,
            url: try #require(WebURL(url)))
    }

    private func login(
        answerURL: String? = nil, _ challenge: ExaminedResponse?, target: String? = nil
    ) throws -> ResourceCheckLogin {
        ResourceCheckLogin(
            name: "shop", handlers: [try Bank.pin()], answerURL: answerURL.flatMap { WebURL($0) },
            address: try #require(WebURL(Self.resource)), challenge: challenge, target: target.flatMap { WebURL($0) })
    }

    private static func wrapped(_ text: String) -> String { "/*-secure-\n\(text)*/" }

    // MARK: Detection

    @Test("a check of ours is found in JSON of a 401, after its body was seen, and nowhere else")
    func detection() throws {
        let detector = ResourceCheckDetector(checks: ["PinCodeAttempts"])
        let ours = #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":3}}}"#
        #expect(detector.examine(try response(401, Self.json, nil), hasSession: false) == .needsBody)
        #expect(detector.examine(try response(401, Self.json, ours), hasSession: false) == .challenged())
        for (status, fields, body) in [
            (401, Self.json, #"{"challenges":{"Other":{}}}"#), (401, Self.json, #"{"error":"no"}"#),
            (401, Self.json, "nonsense"), (200, Self.json, ours), (403, Self.json, ours),
            (401, [.contentType: "text/plain"] as HTTPFields, ours),
        ] {
            #expect(detector.examine(try response(status, fields, body), hasSession: true) == .pass)
        }
    }

    @Test(
        "a composite challenge is found with its wrapper, by 401 and by 403, also with nothing but the client's realms")
    func compositeDetection() throws {
        let detector = ResourceCheckDetector(checks: ["PinCodeAttempts"])
        let ours = Self.wrapped(#"{"challenges":{"PinCodeAttempts":{}}}"#)
        let routine = Self.wrapped(#"{"challenges":{"wl_antiXSRFRealm":{"WL-Instance-Id":"k3v"}}}"#)
        let other = Self.wrapped(#"{"challenges":{"wl_antiXSRFRealm":{},"Other":{}}}"#)
        for status in [401, 403] {
            #expect(detector.examine(try response(status, Self.composite, ours), hasSession: false) == .challenged())
            #expect(detector.examine(try response(status, Self.composite, routine), hasSession: false) == .challenged())
            #expect(detector.examine(try response(status, Self.composite, other), hasSession: false) == .pass)
        }
    }

    // MARK: answer-url

    @Test("the answers go to their address as challengeResponse, and the cookies of it all are the session")
    func answered() async throws {
        let world = World([
            ScriptedStep(
                .post, "\(Self.server)/login",
                .success(SideResponse(status: 200, fields: [.setCookie: "sid=two; Path=/"], body: Array("{}".utf8)))
            ) {
                $0.json == ["challengeResponse": ["PinCodeAttempts": ["pin": "1234"]]]
                    && $0.fields[.cookie] == "pre=one"
            }
        ])
        var fields = Self.json
        fields[.setCookie] = "pre=one; Path=/"
        let challenge = try response(401, fields, #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":3}}}"#)
        let session = try await world.win(try login(answerURL: "\(Self.server)/login", challenge))
        #expect(session.cookies?.contains(name: "sid") == true)
        #expect(session.cookies?.contains(name: "pre") == true)
    }

    @Test("a wrong answer is sent once and latches; the last attempts are not used")
    func wrong() async throws {
        let again = #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":2}}}"#
        let challenge = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":3}}}"#)
        let step = ScriptedStep(.post, "\(Self.server)/login", .success(SideResponse(status: 200)))
        let world = World([step.replying(401, Self.json, again)])
        #expect(await world.lose(try login(answerURL: "\(Self.server)/login", challenge)).code == .rejected)
        let last = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":1}}}"#)
        #expect(await World([]).lose(try login(answerURL: "\(Self.server)/login", last)).code == .attemptsKept)
    }

    @Test("a failure for good is told as such, and a server that is down says nothing of the credential")
    func failures() async throws {
        let challenge = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{}}}"#)
        let step = ScriptedStep(.post, "\(Self.server)/login", .success(SideResponse(status: 200)))
        let blocked = World([
            step.replying(403, Self.json, #"{"failures":{"PinCodeAttempts":{"failure":"Account blocked"}}}"#)
        ])
        #expect(await blocked.lose(try login(answerURL: "\(Self.server)/login", challenge)).code == .accountLocked)
        let down = World([step.replying(503)])
        #expect(await down.lose(try login(answerURL: "\(Self.server)/login", challenge)).code == .failed)
        #expect(down.latches.all.isEmpty)
    }

    @Test("without an address for it the answer stays here, with a hint")
    func noAddress() async throws {
        let challenge = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{}}}"#)
        #expect(await World([]).lose(try login(challenge)).detail.contains("answer-url"))
    }

    // MARK: Worklight

    @Test("the composite dialect: answers in Authorization, the value against forged requests in a field of its own")
    func worklight() async throws {
        let challenge = try response(
            401, Self.composite,
            Self.wrapped(
                #"""
                {"challenges":{"wl_antiXSRFRealm":{"WL-Instance-Id":"k3v"},"wl_deviceNoProvisioningRealm":{"token":"9s"},
                "PinCodeAttempts":{}}}
                """#))
        let success = Self.wrapped(#"{"WL-Authentication-Success":{"PinCodeAttempts":{"userId":"ann"}}}"#)
        let world = World([
            ScriptedStep(
                .get, Self.resource,
                .success(
                    SideResponse(
                        status: 200, fields: [.setCookie: "JSESSIONID=a; Path=/ctx"], body: Array(success.utf8))
                )
            ) { request in
                let answers = request.fields[.authorization].flatMap { JSONValue(parsing: Array($0.utf8)) }
                return request.body == nil && request.fields[Self.instance] == "k3v"
                    && answers?["PinCodeAttempts"] == ["pin": "1234"]
                    && answers?["wl_deviceNoProvisioningRealm"]?["ID"]?["app"]?["id"] == "Shop"
                    && answers?["wl_antiXSRFRealm"] == nil
            }
        ])
        let session = try await world.win(try login(challenge))
        #expect(session.fields.map(\.name) == [Self.instance])
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test("past its realms a server may refuse the request that came without its body; 401 and 5xx are no success")
    func refusedBehind() async throws {
        let challenge = try response(
            401, Self.composite, Self.wrapped(#"{"challenges":{"PinCodeAttempts":{}}}"#))
        let step = ScriptedStep(.get, Self.resource, .success(SideResponse(status: 200)))
        for status in [400, 404, 405] {
            let session = try await World([step.replying(status, [.setCookie: "JSESSIONID=a; Path=/"])]).win(
                login(challenge))
            #expect(session.cookies?.contains(name: "JSESSIONID") == true)
        }
        for status in [401, 403, 429, 500] {
            #expect(await World([step.replying(status)]).lose(try login(challenge)).code == .failed)
        }
    }

    // MARK: Nothing is carried out twice

    private static let pin = wrapped(#"{"challenges":{"PinCodeAttempts":{}}}"#)

    @Test("the answers to the challenge of an unsafe request go to `authenticate`, and none has its method and query")
    func unsafeRequest() async throws {
        let challenge = try response(
            401, Self.composite, Self.pin, method: .post, at: "\(Self.resource)?procedure=pay&amount=100")
        let world = World([
            ScriptedStep(
                .post, "\(Self.server)/ctx/apps/services/api/Shop/android/authenticate",
                .success(SideResponse(status: 200, fields: [.setCookie: "JSESSIONID=a; Path=/"]))
            ) { $0.json?["PinCodeAttempts"] == ["pin": "1234"] }
        ])
        let session = try await world.win(try login(challenge))
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test(
        "where there is no `authenticate`, they go by a GET of the path without the query",
        arguments: [true, false])
    func withoutAddress(isAPI: Bool) async throws {
        let resource = isAPI ? Self.resource : "\(Self.server)/ctx/invoke"
        let challenge = try response(
            401, Self.composite, Self.pin, method: .post, at: "\(resource)?procedure=pay&amount=100")
        let answered = ScriptedStep(
            .get, resource, .success(SideResponse(status: 405, fields: [.setCookie: "JSESSIONID=a; Path=/"]))
        ) { $0.fields[.authorization]?.contains("1234") == true && $0.body == nil }
        let missing = ScriptedStep(
            .post, "\(Self.server)/ctx/apps/services/api/Shop/android/authenticate",
            .success(SideResponse(status: 404)))
        let session = try await World(isAPI ? [missing, answered] : [answered]).win(try login(challenge))
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test("before any challenge the request's own path is asked, by GET and without its query")
    func ahead() async throws {
        let steps = [
            ScriptedStep(.get, "\(Self.server)/ctx/invoke", .success(SideResponse(status: 200)))
                .replying(401, Self.composite, Self.pin),
            ScriptedStep(
                .get, "\(Self.server)/ctx/invoke",
                .success(SideResponse(status: 200, fields: [.setCookie: "JSESSIONID=a; Path=/"]))
            ) { $0.fields[.authorization]?.contains("1234") == true },
        ]
        let login = try login(nil, target: "\(Self.server)/ctx/invoke?procedure=pay")
        let session = try await World(steps).win(login)
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test("where nothing is asked for, or something that is not configured, the session is empty and ends soon")
    func nothingAsked() async throws {
        let other = Self.wrapped(#"{"challenges":{"PinCodeAttempts":{},"Other":{}}}"#)
        let step = ScriptedStep(.get, Self.resource, .success(SideResponse(status: 200, fields: [.setCookie: "a=b"])))
        for answer in [step, step.replying(404), step.replying(401, Self.json, "{}"), step.replying(503)] {
            let session = try await World([answer]).win(try login(nil, target: Self.resource))
            #expect(session.isEmpty && session.expiresAt.map { $0 <= World.now + 60_000 } == true)
        }
        // What is asked for besides ends the login as before, by the name of what has no handler.
        let failure = await World([step.replying(401, Self.composite, other)]).lose(
            try login(nil, target: Self.resource))
        #expect(failure.detail.contains("\"Other\""))
        let unreachable = step.replying(.failure(SideRequestError(.unreachable, reason: "refused")))
        #expect(try await World([unreachable]).win(try login(nil, target: Self.resource)).isEmpty)
        let slow = step.replying(.failure(SideRequestError(.timedOut, reason: "slow")))
        #expect(await World([slow]).lose(try login(nil, target: Self.resource)).code == .timedOut)
    }

    @Test("answers too long for a field go to the address that takes them in a body")
    func longAnswer() async throws {
        let token = String(repeating: "t", count: 1_000)
        let challenge = try response(
            401, Self.composite,
            Self.wrapped(#"{"challenges":{"wl_deviceNoProvisioningRealm":{"token":"\#(token)"},"PinCodeAttempts":{}}}"#)
        )
        let world = World([
            ScriptedStep(
                .post, "\(Self.server)/ctx/apps/services/api/Shop/android/authenticate",
                .success(SideResponse(status: 200, fields: [.setCookie: "JSESSIONID=a; Path=/"]))
            ) {
                $0.fields[.authorization] == "wl-authorization-in-body"
                    && $0.json?["PinCodeAttempts"] == ["pin": "1234"]
            }
        ])
        _ = try await world.win(try login(challenge))
    }

    @Test("a failed realm ends the login, and its credential is latched")
    func worklightFailure() async throws {
        let challenge = try response(
            401, Self.composite, Self.wrapped(#"{"challenges":{"PinCodeAttempts":{}}}"#))
        let world = World([
            ScriptedStep(.get, Self.resource, .success(SideResponse(status: 200))).replying(
                403, [:], Self.wrapped(#"{"WL-Authentication-Failure":{"PinCodeAttempts":{"reason":"wrong"}}}"#))
        ])
        #expect(await world.lose(try login(challenge)).code == .rejected)
        #expect(world.latches.all.count == 1)
    }

    @Test("a realm that nothing is configured for ends the login with its name")
    func unknownRealm() async throws {
        let challenge = try response(
            401, Self.composite, Self.wrapped(#"{"challenges":{"PinCodeAttempts":{},"Other":{}}}"#))
        #expect(await World([]).lose(try login(challenge)).detail.contains("\"Other\""))
    }
}
