// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Testing

@Suite("Requests of a login's own, over the network")
struct SideRequestTests {
    /// A proxy whose login sends these, one after the other, and fails with what came of each as its reason.
    private func proxy(_ port: UInt16, sending requests: [SideRequest]) throws -> TestProxy {
        let login = Authenticator.scripted(port: port, trigger: .ahead, isAhead: true) {
            (_, _, conversation) async throws(LoginFailure) in
            var told: [String] = []
            for request in requests {
                do throws(SideRequestError) {
                    told.append("\(try await conversation.sideRequests.send(request).status)")
                } catch {
                    told.append("\(error.kind)")
                }
            }
            throw LoginFailure(.failed, challenge: "bank", detail: "came: \(told.joined(separator: ", "))")
        }
        return try TestProxy(.bank(port: port, logins: [login]))
    }

    private func request(
        _ port: UInt16, _ method: HTTPRequest.Method = .get, _ path: String = "/login", body: Secret? = nil
    ) -> SideRequest {
        let origin = Origin(scheme: .http, host: "127.0.0.1", port: port)
        return SideRequest(method: method, url: WebURL(origin: origin, path: path), body: body)
    }

    @Test("a login's own requests go to no origin that is not configured, not even another port")
    func origins() throws {
        let upstream = try AnsweringUpstream { _, _ in answer() }
        let other = try AnsweringUpstream { _, _ in answer() }
        let requests = [request(upstream.port), request(other.port, .post, body: Secret("password"))]
        let body = try proxy(upstream.port, sending: requests).fetch(get()).body
        #expect(body.contains("came: 200, originNotAllowed"), "\(body)")
        #expect(other.requests == 0)
    }

    @Test("are not sent again by themselves where their connection is lost", arguments: [nil, Secret("password")])
    func lost(body: Secret?) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try proxy(
            upstream.port, sending: [request(upstream.port), request(upstream.port, .post, body: body)])
        let caller = try proxy.connect()
        try caller.send(get())
        let connection = try upstream.accept()
        _ = try connection.message()
        try connection.send(answer())
        #expect(try connection.message().head.hasPrefix("POST /login "))
        connection.close()
        // libcurl connects anew, as the connection was one that had rested.
        let next = try upstream.accept()
        #expect(!next.readByte())
        next.close()
        let told = try caller.message().body
        #expect(told.contains("came: 200, unreachable"), "\(told)")
    }

    @Test("a request of a login with a credential in its head is not sent again where its connection is lost")
    func lostCredential() throws {
        let upstream = try ScriptedUpstream()
        var probe = request(upstream.port)
        probe.fields[.authorization] = "Basic YTpi"
        let proxy = try proxy(upstream.port, sending: [request(upstream.port), probe])
        let caller = try proxy.connect()
        try caller.send(get())
        let connection = try upstream.accept()
        _ = try connection.message()
        try connection.send(answer())
        #expect(try connection.message().head.contains("YTpi"))
        connection.close()
        let next = try upstream.accept()
        #expect(!next.readByte())
        next.close()
        let told = try caller.message().body
        #expect(told.contains("came: 200, unreachable"), "\(told)")
    }

    @Test("a login's own requests accept at most 1 MiB of response")
    func long() throws {
        let most = 1024 * 1024
        let upstream = try AnsweringUpstream { head, _ in
            answer("200 OK", String(repeating: "a", count: head.contains(" /more ") ? most + 1 : most))
        }
        let requests = [request(upstream.port), request(upstream.port, .get, "/more")]
        let body = try proxy(upstream.port, sending: requests).fetch(get()).body
        #expect(body.contains("came: 200, badAnswer"), "\(body)")
    }
}
