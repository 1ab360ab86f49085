// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Testing

/// The settings' own check comes first; these are upstreams as it would not let them pass.
@Suite("Secrets in the clear, at the last moment")
struct PlaintextTests {
    private func plan(host: String, isProxied: Bool, isAllowed: Bool, _ login: Authenticator) -> UpstreamPlan {
        var connections = ConnectionSettings()
        // Nobody listens there: what gets that far is told apart from what is not sent.
        if isProxied { connections.proxy = "http://127.0.0.1:1" }
        connections.allowsPlaintext = isAllowed
        return .secure(host: host, port: 1, scheme: .http, connections: connections, logins: [login])
    }

    @Test(
        "a session's fields do not leave this machine, nor go to a proxy",
        arguments: [
            ("bank.invalid", false, false), ("bank.invalid", true, false), ("localhost", true, false),
            ("127.0.0.1", true, false), ("bank.invalid", false, true), ("localhost", true, true),
            ("localhost", false, false),
        ])
    func sessions(host: String, isProxied: Bool, isAllowed: Bool) throws {
        let login = Authenticator.scripted(port: 1, trigger: .ahead, isAhead: true) { _, _, _ in .bearer("secret") }
        let proxy = try TestProxy(plan(host: host, isProxied: isProxied, isAllowed: isAllowed, login))
        let (head, body) = try proxy.fetch(get())
        #expect(head.hasPrefix("HTTP/1.1 502 "))
        let isSent = isAllowed || host == "localhost" && !isProxied
        #expect(body.contains(isSent ? "\"code\":\"upstream-unreachable\"" : "in the clear"), "\(body)")
    }

    @Test("a session's fields are not sent in the clear to another proxy")
    func rig() throws {
        let login = Authenticator.scripted(port: 1, trigger: .ahead, isAhead: true) { _, _, _ in .bearer("secret") }
        let rig = try AuthRequestRig { _ in
            plan(host: "bank.invalid", isProxied: false, isAllowed: false, login)
        }
        let head = try rig.ask()
        #expect(head.hasPrefix("HTTP/1.1 403 ") && head.contains("in the clear") && !head.contains("secret"), "\(head)")
    }

    @Test("a login's own requests are not sent in the clear", arguments: [false, true])
    func logins(isAllowed: Bool) throws {
        let login = Authenticator.scripted(port: 1, trigger: .ahead, isAhead: true) {
            (_, _, conversation) async throws(LoginFailure) in
            let url = WebURL(origin: Origin(scheme: .http, host: "bank.invalid", port: 1), path: "/login")
            do throws(SideRequestError) {
                _ = try await conversation.sideRequests.send(SideRequest(method: .get, url: url))
                return .bearer("secret")
            } catch {
                throw LoginFailure(.failed, challenge: "bank", detail: "told: \(error.kind)")
            }
        }
        let body = try TestProxy(plan(host: "bank.invalid", isProxied: false, isAllowed: isAllowed, login)).fetch(get())
            .body
        #expect(body.contains(isAllowed ? "told: unreachable" : "told: originNotAllowed"), "\(body)")
    }
}
