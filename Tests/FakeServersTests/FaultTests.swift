// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("faults")
struct FaultTests {
    private func statuses(_ count: Int, _ fault: Fault) throws -> [Int] {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        let token = try phone.login()
        server.faults.add(fault)
        return try (0..<count).map { _ in try phone.resource("bank/balance", token: token).status }
    }

    @Test("strike so many times, after so many requests")
    func counted() throws {
        #expect(try statuses(5, Fault(.conflict, at: .resource, times: 3)) == [409, 409, 409, 200, 200])
        #expect(try statuses(4, Fault(.conflict, at: .resource, times: 1, skip: 2)) == [200, 200, 409, 200])
        #expect(try statuses(9, Fault(.conflict, at: .resource)) == [Int](repeating: 409, count: 9))
        #expect(try statuses(2, Fault(.conflict, at: .token)) == [200, 200])
        #expect(try statuses(1, Fault(.unavailable(500), at: nil)) == [500])
    }

    @Test("a conflict with the header, and one without")
    func conflicts() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        server.faults.add(Fault(.conflict, at: .preauthorize, times: 1))
        server.faults.add(Fault(.conflictWithoutHeader, at: .preauthorize, times: 1))
        #expect(try phone.preauthorize("").field("mfp-conflict") == "true")
        let second = try phone.preauthorize("")
        #expect(second.status == 409)
        #expect(second.field("MFP-Conflict") == nil)
        #expect(try phone.preauthorize("").status == 200)
    }

    @Test("insufficient_scope that names another scope each time")
    func changingScope() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        server.faults.add(Fault(.changingScope, at: .resource))
        let named = try (1...3).map { _ in
            try phone.resource("bank/balance", token: nil).field("WWW-Authenticate") ?? ""
        }
        #expect(Set(named).count == 3)
        #expect(named.allSatisfy { $0.hasPrefix("Bearer error=\"insufficient_scope\", scope=\"RegisteredClient ch") })
    }

    @Test("a server in trouble says how long, at any endpoint", arguments: Endpoint.allCases)
    func trouble(endpoint: Endpoint) throws {
        let upstream = FakeUpstream()
        upstream.faults.add(Fault(.unavailable(429, retryAfter: 7), at: endpoint))
        let paths: [Endpoint: String] = [
            .authorization: "/mfp/api/az/v1/authorization", .basic: "/basic/", .form: "/form/",
            .heartbeat: "/mfp/api/preauth/v1/heartbeat", .logout: "/mfp/api/preauth/v1/logout", .other: "/open/",
            .preauthorize: "/mfp/api/preauth/v1/preauthorize", .registration: "/mfp/api/registration/v1/self",
            .resource: "/mfp/api/adapters/bank/balance", .token: "/mfp/api/az/v1/token",
        ]
        for (other, path) in paths {
            let response = upstream.respond(to: FakeRequest("GET", path))
            #expect((response.status == 429) == (other == endpoint))
            if other == endpoint { #expect(response.field("Retry-After") == "7") }
        }
    }

    @Test("garbage, and the right answer under a wrong type")
    func garbage() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        server.faults.add(Fault(.garbage, at: .preauthorize, times: 1))
        server.faults.add(Fault(.contentType("text/plain"), at: .preauthorize, times: 1))
        let garbage = try phone.preauthorize("")
        #expect(garbage.status == 200)
        #expect(garbage.json == nil)
        let typed = try phone.preauthorize("")
        #expect(typed.field("Content-Type") == "text/plain")
        #expect(typed.json?["successes"] != nil)
    }

    @Test("an answer that is lost on its way was looked at all the same")
    func lostAnswer() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        server.faults.add(Fault(.cut(after: 0), at: .preauthorize, times: 1))
        #expect(try phone.pin("0000").delivery.cutsAfter == 0)
        #expect(server.recorder.record.wrongAnswers == ["PinCodeAttempts": 1])
    }

    @Test("delay, hang, cut, reset and close are told to the one who delivers")
    func deliveries() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        for effect in [.delay(.seconds(1)), .hang, .cut(after: 5, reset: true), .close] as [Fault.Effect] {
            server.faults.add(Fault(effect, at: .preauthorize, times: 1))
        }
        #expect(try phone.preauthorize("").delivery.delay == .seconds(1))
        #expect(try phone.preauthorize("").delivery.hangs)
        let cut = try phone.preauthorize("").delivery
        #expect(cut.cutsAfter == 5)
        #expect(cut.resets)
        #expect(try phone.preauthorize("").delivery.closes)
    }

    @Test("a gateway in front: a redirect, HTML with 401, a maintenance page")
    func otherThanSuccess() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        server.faults.add(Fault(.redirect(to: "/login"), at: .resource, times: 1))
        server.faults.add(Fault(.answer(.html(401, "<html>")), at: .resource, times: 1))
        server.faults.add(Fault(.unavailable(), at: .resource, times: 1))
        let responses = try (0..<3).map { _ in try phone.resource("bank/balance", token: nil) }
        #expect(responses.map(\.status) == [302, 401, 503])
        #expect(responses[0].field("Location") == "/login")
    }
}

@Suite("waiting for what happens")
struct RecorderTests {
    @Test("a wait ends with the event, or at once when it has happened already")
    func happens() async throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        async let waited = server.recorder.waitUntil(answers: 2, to: "PinCodeAttempts")
        _ = try phone.pin("0000")
        _ = try phone.pin("1234")
        #expect(await waited)
        #expect(await server.recorder.waitUntil(answers: 1))
    }

    @Test("a wait for what does not happen ends with its time", arguments: [.zero, .milliseconds(20)] as [Duration])
    func doesNotHappen(timeout: Duration) async {
        let recorder = Recorder()
        #expect(await recorder.waitUntil(answers: 1, timeout: timeout) == false)
    }
}
