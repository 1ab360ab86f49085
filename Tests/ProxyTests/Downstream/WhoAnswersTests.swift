// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import HTTPWire
import Proxy
import Testing

@Suite("OPTIONS * that goes no further")
struct WhoAnswersTests {
    private struct Greeting: LocalService {
        func answer(_ request: LocalRequest) -> LocalAnswer {
            LocalAnswer(status: 200, contentType: "text/plain", body: Array("in".utf8))
        }
    }

    private static let request = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\n\r\n"
    private static let services: [ListenerPlan.Service] = [.proxy, .authRequests, .local(Greeting())]

    private func ask(_ service: ListenerPlan.Service, _ request: String, users: Set<UInt32>? = nil) throws -> String {
        let upstream = try ScriptedUpstream()
        // No route takes anything.
        let plan = ListenerPlan(
            name: "test", service: service,
            router: Router(routes: [Router.Route(path: "/x/", upstream: "bank")], fallback: nil), hosts: HostPolicy(),
            users: users)
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: plan)],
                upstreams: [.bank(port: upstream.port)]))
        return try proxy.fetch(request).head
    }

    @Test(
        "OPTIONS * with Max-Forwards 0 is answered by each kind of listener, with the program's name",
        arguments: [0, 1, 2])
    func answered(service: Int) throws {
        let head = try ask(Self.services[service], Self.request)
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        #expect(head.contains("\r\nProxy-Status: countersign\r\n"))
    }

    @Test("OPTIONS * with Max-Forwards 0 is refused for unknown hosts and other users")
    func refused() throws {
        let foreign = Self.request.replacing("localhost", with: "evil.example")
        #expect(try !ask(.proxy, foreign).hasPrefix("HTTP/1.1 200 "))
        #expect(try ask(.proxy, Self.request, users: [4_294_967_294]).hasPrefix("HTTP/1.1 403 "))
    }
}
