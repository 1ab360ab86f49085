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
        answerURL: String? = nil, _ challenge: ExaminedResponse?, target: String? = nil, isShared: Bool = false
    ) throws -> ResourceCheckLogin {
        ResourceCheckLogin(
            name: "shop", handlers: [try Bank.pin()], answerURL: answerURL.flatMap { WebURL($0) },
            address: try #require(WebURL(Self.resource)), challenge: challenge, target: target.flatMap { WebURL($0) },
            isShared: isShared)
    }

    private static func wrapped(_ text: String) -> String { "/*-secure-\n\(text)*/" }

    // MARK: Detection

    @Test("a configured check is detected only in the JSON body of a 401")
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
        "a composite challenge is detected in its wrapper, with 401 and 403, even with only client realms")
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

    @Test("answers to checks go to their address as challengeResponse, and the cookies are the session")
    func answered() async throws {
        let rig = LoginRig([
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
        let session = try await rig.logIn(try login(answerURL: "\(Self.server)/login", challenge))
        #expect(session.cookies?.contains(name: "sid") == true)
        #expect(session.cookies?.contains(name: "pre") == true)
    }

    @Test("a wrong answer to a resource's check is sent once and latches, and the last attempts are not used")
    func wrong() async throws {
        let again = #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":2}}}"#
        let challenge = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":3}}}"#)
        let step = ScriptedStep(.post, "\(Self.server)/login", .success(SideResponse(status: 200)))
        let rig = LoginRig([step.replying(401, Self.json, again)])
        #expect(await rig.lose(try login(answerURL: "\(Self.server)/login", challenge)).code == .rejected)
        let last = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":1}}}"#)
        #expect(await LoginRig([]).lose(try login(answerURL: "\(Self.server)/login", last)).code == .attemptsKept)
    }

    @Test("where other nodes log in too, the challenge is asked for again, and the last attempts are not used")
    func shared() async throws {
        let challenge = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":3}}}"#)
        let login = try login(answerURL: "\(Self.server)/login", challenge, isShared: true)
        let again = ScriptedStep(.get, Self.resource, .success(SideResponse(status: 200)))
        let last = #"{"challenges":{"PinCodeAttempts":{"remainingAttempts":1}}}"#
        #expect(await LoginRig([again.replying(401, Self.json, last)]).lose(login).code == .attemptsKept)
        // If a GET of the resource shows no challenge, the present one is used.
        let answered = ScriptedStep(
            .post, "\(Self.server)/login",
            .success(SideResponse(status: 200, fields: [.setCookie: "sid=two; Path=/"], body: Array("{}".utf8))))
        for status in [200, 405, 503] {
            let session = try await LoginRig([again.replying(status), answered]).logIn(login)
            #expect(session.cookies?.contains(name: "sid") == true)
        }
    }

    @Test("a resource check's final failure is reported, and a server error says nothing about the credential")
    func failures() async throws {
        let challenge = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{}}}"#)
        let step = ScriptedStep(.post, "\(Self.server)/login", .success(SideResponse(status: 200)))
        let blocked = LoginRig([
            step.replying(403, Self.json, #"{"failures":{"PinCodeAttempts":{"failure":"Account blocked"}}}"#)
        ])
        #expect(await blocked.lose(try login(answerURL: "\(Self.server)/login", challenge)).code == .accountLocked)
        let down = LoginRig([step.replying(503)])
        #expect(await down.lose(try login(answerURL: "\(Self.server)/login", challenge)).code == .failed)
        #expect(down.latches.all.isEmpty)
    }

    @Test("without an address for the answer nothing is sent, and `answer-url` is suggested")
    func noAddress() async throws {
        let challenge = try response(401, Self.json, #"{"challenges":{"PinCodeAttempts":{}}}"#)
        #expect(await LoginRig([]).lose(try login(challenge)).detail.contains("answer-url"))
    }

    // MARK: Worklight

    @Test("the composite dialect sends answers in Authorization and the anti-XSRF value in its own field")
    func worklight() async throws {
        let challenge = try response(
            401, Self.composite,
            Self.wrapped(
                #"""
                {"challenges":{"wl_antiXSRFRealm":{"WL-Instance-Id":"k3v"},"wl_deviceNoProvisioningRealm":{"token":"9s"},
                "PinCodeAttempts":{}}}
                """#))
        let success = Self.wrapped(#"{"WL-Authentication-Success":{"PinCodeAttempts":{"userId":"ann"}}}"#)
        let rig = LoginRig([
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
        let session = try await rig.logIn(try login(challenge))
        #expect(session.fields.map(\.name) == [Self.instance])
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test("after its realms a server may refuse the request without its body, but 401 and 5xx are no success")
    func refusedBehind() async throws {
        let challenge = try response(
            401, Self.composite, Self.wrapped(#"{"challenges":{"PinCodeAttempts":{}}}"#))
        let step = ScriptedStep(.get, Self.resource, .success(SideResponse(status: 200)))
        for status in [400, 404, 405] {
            let session = try await LoginRig([step.replying(status, [.setCookie: "JSESSIONID=a; Path=/"])]).logIn(
                login(challenge))
            #expect(session.cookies?.contains(name: "JSESSIONID") == true)
        }
        for status in [401, 403, 408, 429, 500] {
            #expect(await LoginRig([step.replying(status)]).lose(try login(challenge)).code == .failed)
        }
    }

    // MARK: Nothing is carried out twice

    private static let pin = wrapped(#"{"challenges":{"PinCodeAttempts":{}}}"#)

    @Test("the answers to the challenge of an unsafe request go to `authenticate`, and none has its method and query")
    func unsafeRequest() async throws {
        let challenge = try response(
            401, Self.composite, Self.pin, method: .post, at: "\(Self.resource)?procedure=pay&amount=100")
        let rig = LoginRig([
            ScriptedStep(
                .post, "\(Self.server)/ctx/apps/services/api/Shop/android/authenticate",
                .success(SideResponse(status: 200, fields: [.setCookie: "JSESSIONID=a; Path=/"]))
            ) { $0.json?["PinCodeAttempts"] == ["pin": "1234"] }
        ])
        let session = try await rig.logIn(try login(challenge))
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test(
        "without `authenticate`, composite answers go by a GET of the path without the query",
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
        let session = try await LoginRig(isAPI ? [missing, answered] : [answered]).logIn(try login(challenge))
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test("before any challenge a waiting request's path is requested for checks, by GET without its query")
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
        let session = try await LoginRig(steps).logIn(login)
        #expect(session.cookies?.contains(name: "JSESSIONID") == true)
    }

    @Test("a resource that demands no configured check gets an empty, short session")
    func nothingAsked() async throws {
        let other = Self.wrapped(#"{"challenges":{"PinCodeAttempts":{},"Other":{}}}"#)
        let step = ScriptedStep(.get, Self.resource, .success(SideResponse(status: 200, fields: [.setCookie: "a=b"])))
        for answer in [step, step.replying(404), step.replying(401, Self.json, "{}"), step.replying(503)] {
            let session = try await LoginRig([answer]).logIn(try login(nil, target: Self.resource))
            #expect(session.isEmpty && session.expiresAt.map { $0 <= LoginRig.now + 60_000 } == true)
        }
        // A further check without a handler ends the login as before, with its name.
        let failure = await LoginRig([step.replying(401, Self.composite, other)]).lose(
            try login(nil, target: Self.resource))
        #expect(failure.detail.contains("\"Other\""))
        let unreachable = step.replying(.failure(SideRequestError(.unreachable, reason: "refused")))
        #expect(try await LoginRig([unreachable]).logIn(try login(nil, target: Self.resource)).isEmpty)
        let slow = step.replying(.failure(SideRequestError(.timedOut, reason: "slow")))
        #expect(await LoginRig([slow]).lose(try login(nil, target: Self.resource)).code == .timedOut)
    }

    @Test("composite answers too long for a field go to the address that takes them in a body")
    func longAnswer() async throws {
        let token = String(repeating: "t", count: 1_000)
        let challenge = try response(
            401, Self.composite,
            Self.wrapped(#"{"challenges":{"wl_deviceNoProvisioningRealm":{"token":"\#(token)"},"PinCodeAttempts":{}}}"#)
        )
        let rig = LoginRig([
            ScriptedStep(
                .post, "\(Self.server)/ctx/apps/services/api/Shop/android/authenticate",
                .success(SideResponse(status: 200, fields: [.setCookie: "JSESSIONID=a; Path=/"]))
            ) {
                $0.fields[.authorization] == "wl-authorization-in-body"
                    && $0.json?["PinCodeAttempts"] == ["pin": "1234"]
            }
        ])
        _ = try await rig.logIn(try login(challenge))
    }

    @Test("a failed Worklight realm ends the login, and its credential is latched")
    func worklightFailure() async throws {
        let challenge = try response(
            401, Self.composite, Self.wrapped(#"{"challenges":{"PinCodeAttempts":{}}}"#))
        let rig = LoginRig([
            ScriptedStep(.get, Self.resource, .success(SideResponse(status: 200))).replying(
                403, [:], Self.wrapped(#"{"WL-Authentication-Failure":{"PinCodeAttempts":{"reason":"wrong"}}}"#))
        ])
        #expect(await rig.lose(try login(challenge)).code == .rejected)
        #expect(rig.latches.all.count == 1)
    }

    // MARK: A session that ends meanwhile

    /// Returns a challenge for the PIN in the server's session of that name.
    private static func asked(in session: String) -> String {
        wrapped(#"{"challenges":{"wl_antiXSRFRealm":{"WL-Instance-Id":"\#(session)"},"PinCodeAttempts":{}}}"#)
    }

    /// Returns the steps of a login whose server begins another session after the answer and asks for the PIN again.
    private static func sessionEndingOnce(_ last: SideResponse) -> [ScriptedStep] {
        let again = SideResponse(status: 401, fields: composite, body: Array(asked(in: "two").utf8))
        return [
            ScriptedStep(.get, resource, .success(again)) { $0.fields[instance] == "one" },
            ScriptedStep(.get, resource, .success(last)) {
                $0.fields[instance] == "two" && $0.fields[.authorization]?.contains("1234") == true
            },
        ]
    }

    private func endingLogin() throws -> ResourceCheckLogin {
        try login(try response(401, Self.composite, Self.asked(in: "one")))
    }

    private func acceptPin(_ rig: LoginRig) async {
        let key = LatchKey(origin: Bank.origin, challenge: "bank-pin-challenge", credential: "bank-pin")
        await CredentialUse(key: key, credential: .bankPIN).accept(in: rig.conversation)
    }

    @Test("a PIN that was accepted before is given once more if the server's session ends during the login")
    func sessionEnds() async throws {
        let success = Self.wrapped(#"{"WL-Authentication-Success":{"PinCodeAttempts":{"userId":"ann"}}}"#)
        let rig = LoginRig(Self.sessionEndingOnce(SideResponse(status: 200, body: Array(success.utf8))))
        await acceptPin(rig)
        #expect(try await rig.logIn(try endingLogin()).fields.map(\.name) == [Self.instance])
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a PIN that a login has shown to be right is given once more in a later one")
    func sessionEndsLater() async throws {
        let success = Self.wrapped(#"{"WL-Authentication-Success":{"PinCodeAttempts":{"userId":"ann"}}}"#)
        let passed = SideResponse(status: 200, body: Array(success.utf8))
        for first in [passed, SideResponse(status: 200)] {
            let rig = LoginRig([ScriptedStep(.get, Self.resource, .success(first))] + Self.sessionEndingOnce(passed))
            // The script continues after this login.
            _ = try await endingLogin().logIn(rig.conversation)
            _ = try await rig.logIn(try endingLogin())
            #expect(rig.latches.all.isEmpty)
        }
    }

    @Test("a PIN that was never accepted is given once, even if the server begins another session")
    func sessionEndsForUnknownPin() async throws {
        let rig = LoginRig(Array(Self.sessionEndingOnce(SideResponse(status: 200)).prefix(1)))
        #expect(await rig.lose(try endingLogin()).code == .rejected)
        #expect(rig.latches.all.count == 1)
    }

    @Test("a PIN that was accepted before is latched when a server of ever new sessions asks for it a third time")
    func sessionEndsTwice() async throws {
        let third = SideResponse(
            status: 401, fields: Self.composite, body: Array(Self.asked(in: "three").utf8))
        let rig = LoginRig(Self.sessionEndingOnce(third))
        await acceptPin(rig)
        #expect(await rig.lose(try endingLogin()).code == .rejected)
        #expect(rig.latches.all.count == 1)
    }

    @Test("an unconfigured Worklight realm ends the login with its name")
    func unknownRealm() async throws {
        let challenge = try response(
            401, Self.composite, Self.wrapped(#"{"challenges":{"PinCodeAttempts":{},"Other":{}}}"#))
        #expect(await LoginRig([]).lose(try login(challenge)).detail.contains("\"Other\""))
    }
}
