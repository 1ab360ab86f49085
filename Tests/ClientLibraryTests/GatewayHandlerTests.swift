// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FakeServers
import HTTPTypes
import LoginExamples
import TestSupport
import Testing

@Suite("Handlers of gateways", .timeLimit(.minutes(10)))
struct GatewayHandlerTests {
    /// Returns a handler that submits these passwords, in order, and then gives up.
    private func person(_ passwords: String..., notes: Notes = Notes()) -> FormHandler {
        FormHandler { again in
            notes.add(again ? "again" : "first")
            return notes.count <= passwords.count ? ("ann", passwords[notes.count - 1]) : nil
        }
    }

    @Test("the form of a Java EE container is filled in once, for all requests")
    func form() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(person("demo", notes: notes))
            try await withThrowingTaskGroup(of: HTTPResponse.Status.self) { group in
                for number in 0..<10 {
                    group.addTask { try await demo.client.send(to: demo.url("/form/\(number)")).status }
                }
                for try await status in group { #expect(status == .ok) }
            }
            #expect(notes.all == ["first"])
            #expect(demo.upstream.recorder.record.logins["form"] == 1)
        }
    }

    @Test("a request with a body is sent again as it was, after the login")
    func replay() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person("demo"))
            let body = RequestBody.bytes(Array(repeating: 9, count: 3000))
            let response = try await demo.client.send(.post, to: demo.url("/form/data"), body: body)
            #expect(response.status == .ok)
            let hits = demo.upstream.recorder.record.hits.filter { $0.method == "POST" }
            #expect(hits.map(\.size) == [3000])
        }
    }

    @Test("a wrong password has the handler asked again, and another may be right")
    func wrongThenRight() async throws {
        try await withDemo { demo in
            let notes = Notes()
            try demo.client.registerChallengeHandler(person("wrong", "demo", notes: notes))
            #expect(try await demo.client.send(to: demo.url("/form/a")).status == .ok)
            #expect(notes.all == ["first", "again"])
        }
    }

    @Test("a password that was rejected is not submitted again")
    func latched() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person("wrong", "wrong", "wrong"))
            for _ in 0..<2 {
                let error = try await clientError { try await demo.client.send(to: demo.url("/form/a")) }
                #expect(error.loginFailure?.code == .latched)
            }
            #expect(demo.upstream.recorder.record.wrongAnswers["form"] == 1)
        }
    }

    @Test("a handler that gives up submits nothing, and the waiting requests say why")
    func givesUp() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person())
            let error = try await clientError { try await demo.client.send(to: demo.url("/form/a")) }
            #expect(error.detail == "Nobody logged in.")
            #expect(demo.upstream.recorder.record.answers["form"] == nil)
        }
    }

    @Test("without a handler, or elsewhere than at its locations, the login page is a response like any other")
    func elsewhere() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person("demo"), at: "127.0.0.1:*/other/*")
            let response = try await demo.client.send(to: demo.url("/form/a"))
            #expect(try await response.text(upTo: 10_000).contains("j_security_check"))
            demo.client.unregisterChallengeHandler(gatewayName: "SampleAppRealm")
            try demo.client.registerChallengeHandler(person("demo"), at: "127.0.0.1:*/form/*")
            #expect(try await demo.client.send(to: demo.url("/form/a")).status == .ok)
        }
    }

    @Test("an unregistered gateway handler leaves no session")
    func takenBack() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person("demo"))
            #expect(try await demo.client.send(to: demo.url("/form/a")).head.headerFields[.contentType] != nil)
            demo.client.unregisterChallengeHandler(gatewayName: "SampleAppRealm")
            let later = try await demo.client.send(to: demo.url("/form/a"))
            #expect(try await later.text(upTo: 10_000).contains("j_security_check"))
        }
    }

    @Test("a second handler of one name, and a place that is none, are refused")
    func refusals() async throws {
        try await withDemo { demo in
            try demo.client.registerChallengeHandler(person())
            let second = person()
            let duplicate = #expect(throws: RegistrationError.self) {
                try demo.client.registerChallengeHandler(second)
            }
            #expect(duplicate?.kind == .alreadyRegistered)
            let misplaced = #expect(throws: RegistrationError.self) {
                try demo.client.registerChallengeHandler(ScriptedGateway(), at: "a.*.com")
            }
            #expect(misplaced?.kind == .noLocation)
        }
    }

    @Test("success is told for 200, failure for anything else, and neither for the login page")
    func verdicts() async throws {
        for (status, word) in [(200, "success 200"), (404, "failure 404")] {
            try await withDemo { demo in
                demo.upstream.override { gateway($0, FakeResponse(status, fields: [cookie])) }
                let handler = ScriptedGateway()
                try demo.client.registerChallengeHandler(handler)
                _ = try? await demo.client.send(to: demo.url("/a"))
                #expect(handler.notes.all == ["challenge", word])
            }
        }
    }

    @Test("a form that is answered with the page again is a challenge again, with no success told")
    func pageAgain() async throws {
        try await withDemo { demo in
            demo.upstream.override { gateway($0, FakeResponse(200, fields: [("X-Gateway", "login")])) }
            let handler = ScriptedGateway()
            try demo.client.registerChallengeHandler(handler)
            let error = try await clientError { try await demo.client.send(to: demo.url("/a")) }
            #expect(handler.notes.all == ["challenge", "again"])
            #expect(error.detail == "Wrong.")
        }
    }

    @Test("a handler that claims success is not believed while the gateway still challenges")
    func notBelieved() async throws {
        try await withDemo { demo in
            // The answer sets no cookie, so the page comes again.
            demo.upstream.override { gateway($0, FakeResponse(200)) }
            let handler = ScriptedGateway()
            try demo.client.registerChallengeHandler(handler)
            _ = try await clientError { try await demo.client.send(to: demo.url("/a")) }
            #expect(handler.notes.all == ["challenge", "success 200", "again"])
        }
    }

    @Test("a handler that declines a page has the request sent again, and the page passes")
    func notMine() async throws {
        try await withDemo { demo in
            demo.upstream.override { gateway($0, FakeResponse(200)) }
            let handler = ScriptedGateway(answer: .submitSuccess)
            try demo.client.registerChallengeHandler(handler)
            let text = try await demo.client.send(to: demo.url("/a")).text(upTo: 10_000)
            #expect(text == "Who are you?")
            // The request is sent once more, as an empty session may have been meant for another request.
            #expect(handler.notes.all == ["challenge", "challenge"])
        }
    }

    @Test("a form for another server is not submitted, unless the configuration names that")
    func foreignOrigin() async throws {
        let other = FakeUpstream()
        try other.start()
        defer { other.stop() }
        let address = "http://127.0.0.1:\(other.port)/log-in"
        for isNamed in [false, true] {
            try await withDemo {
                if isNamed, let url = WebURL(address) { $0.loginOrigins = [url.origin] }
            } _: { demo in
                demo.upstream.override { gateway($0, FakeResponse(200)) }
                try demo.client.registerChallengeHandler(
                    ScriptedGateway(answer: .submitLoginForm(url: address, parameters: ["password": "x"])))
                _ = try await clientError { try await demo.client.send(to: demo.url("/a")) }
                #expect(other.recorder.record.count("POST", "/log-in") == (isNamed ? 1 : 0))
            }
        }
    }

    @Test("a handler that throws, or never answers, fails the login and nothing else", arguments: [true, false])
    func failing(isSlow: Bool) async throws {
        try await withDemo {
            if isSlow { $0.timeouts.handler = .milliseconds(100) }
        } _: { demo in
            try demo.client.registerChallengeHandler(
                FormHandler { _ in
                    if isSlow { await untilCancelled() }
                    return nil
                })
            let error = try await clientError { try await demo.client.send(to: demo.url("/form/a")) }
            #expect(error.loginFailure?.code == (isSlow ? .timedOut : .failed))
            #expect(try await demo.client.send(to: demo.url("/open/echo")).status == .ok)
        }
    }

    @Test("an adapter of 7.1 that answers with JSON of its own is called with the answer")
    func adapter() async throws {
        try await withDemo { demo in
            demo.upstream.override { request in
                if request.path == "/worklight/invoke" {
                    let isRight = request.form?["parameters"] == #"["ann","demo"]"#
                    return .json(200, ["authRequired": .bool(!isRight)], fields: isRight ? [cookie] : [])
                }
                guard request.cookie("GATEWAY") == nil else { return nil }
                return .json(200, ["authRequired": true])
            }
            try demo.client.registerChallengeHandler(AdapterHandler())
            let text = try await demo.client.send(to: demo.url("/open/echo")).text(upTo: 10_000)
            #expect(!text.contains("authRequired"))
        }
    }
}

private let cookie = ("Set-Cookie", "GATEWAY=in; Path=/")

/// Answers a request as a gateway that guards every path; `answer` is the reply to its form.
private func gateway(_ request: FakeRequest, _ answer: FakeResponse) -> FakeResponse? {
    if request.path == "/log-in" { return answer }
    if request.cookie("GATEWAY") != nil { return nil }
    return .html(200, "Who are you?", fields: [("X-Gateway", "login")])
}

/// Handler that recognizes the gateway by a field, and gives one answer.
private struct ScriptedGateway: GatewayChallengeHandler {
    let gatewayName = "scripted"
    let notes = Notes()
    var answer = GatewayAnswer.submitLoginForm(url: "/log-in", parameters: ["password": "x"])

    func canHandleResponse(_ response: ExaminedResponse) -> Bool {
        HTTPField.Name("X-Gateway").map { response.fields[$0] == "login" } ?? false
    }

    func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        notes.add(challenge.isRepeated ? "again" : "challenge")
        return challenge.isRepeated ? .cancel(reason: "Wrong.") : answer
    }

    func onSuccess(_ response: ExaminedResponse) async throws -> GatewayAnswer {
        notes.add("success \(response.status)")
        return .submitSuccess
    }

    func onFailure(_ response: ExaminedResponse) async throws -> GatewayAnswer {
        notes.add("failure \(response.status)")
        return .cancel(reason: "No.")
    }
}

/// IBM's sample of adapter-based authentication.
private struct AdapterHandler: RealmChallengeHandler {
    let realm = "AuthRealm"

    func isCustomResponse(_ response: ExaminedResponse) -> Bool { response.json?["authRequired"] == true }

    func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        if challenge.isRepeated { return .submitFailure("Wrong.") }
        return .submitAdapterAuthentication(
            adapter: "AuthAdapter", procedure: "submitAuthentication", parameters: ["ann", "demo"])
    }
}
