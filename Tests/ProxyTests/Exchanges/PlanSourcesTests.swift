// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Secrets
import TestSupport
import Testing

/// The sources of one configuration: a lookup takes until the test says so.
private final class Sources: CredentialProvider {
    let (isAsked, isTold) = (Signal(), Signal())
    private let password: String

    init(_ password: String, isTold: Bool = true) {
        self.password = password
        if isTold { self.isTold.set() }
    }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        isAsked.set()
        await isTold.wait()
        return Credential(name: name, fields: ["username": Secret("ann"), "password": Secret(password)])
    }
}

/// A server that asks for Basic, and notes the passwords that it gets.
private final class Office: Sendable {
    let passwords = Notes()

    func upstream() throws -> AnsweringUpstream {
        try AnsweringUpstream { [passwords] head, _ in
            guard let field = head.split(separator: "\r\n").first(where: { $0.hasPrefix("Authorization: Basic ") })
            else { return answer("401 Unauthorized", "who?", "WWW-Authenticate: Basic realm=\"a\"\r\n") }
            passwords.add(Base64.decode(String(field.dropFirst(21))).map { String(decoding: $0, as: UTF8.self) } ?? "?")
            return answer("200 OK", "in")
        }
    }
}

@Suite("Credential sources of a configuration, over a reload")
struct PlanSourcesTests {
    private let any = ListenPoint.tcp(host: "127.0.0.1", port: 0)
    private let oldOffice = Office()
    private let newOffice = Office()

    /// Returns the plan of an upstream whose logins ask `sources`.
    private func plan(_ port: UInt16, _ sources: Sources, generation: UInt64) -> UpstreamPlan {
        let origin = Origin(scheme: .http, host: "127.0.0.1", port: port)
        let plan = SchemePlan(
            name: "bank", schemes: [BasicScheme()],
            key: LatchKey(origin: origin, challenge: "bank", credential: "pin"),
            address: WebURL(origin: origin, path: "/"), isProof: false)
        let login = Authenticator(
            name: "bank", trigger: .detected(SchemeDetector(plan)), isAhead: false,
            key: SessionKey(origin: origin, challenge: "bank", credential: "pin"), credentials: ["pin"],
            makeLogin: { SchemeLogin(plan, challenge: $0.challenge, scope: $0.scope) })
        return UpstreamPlan.bank(port: port, logins: [login])
            .asking(PlanSources(sources, generation: generation))
    }

    private func apply(_ plan: UpstreamPlan, to proxy: TestProxy) throws {
        try proxy.server.apply(ProxyPlan(listeners: [(point: any, plan: .proxy())], upstreams: [plan]))
    }

    @Test(
        "a login that finds its value after the reload sends that value to its own upstream, and the new upstream gets the new one",
        arguments: [1, 2])
    func lateLookup(workers: Int) throws {
        let (old, new) = try (oldOffice.upstream(), newOffice.upstream())
        let (oldSources, newSources) = (Sources("old", isTold: false), Sources("new"))
        let proxy = try TestProxy(
            workers: workers,
            ProxyPlan(
                listeners: [(point: any, plan: .proxy())],
                upstreams: [plan(old.port, oldSources, generation: 1)]))
        let caller = try proxy.connect()
        try caller.send(get())
        oldSources.isAsked.wait()
        try apply(plan(new.port, newSources, generation: 2), to: proxy)
        for _ in 0..<3 { #expect(try proxy.fetch(get()).body == "in") }
        oldSources.isTold.set()
        #expect(try caller.message().body == "in")
        for _ in 0..<3 { #expect(try proxy.fetch(get()).body == "in") }
        #expect(Set(oldOffice.passwords.all) == ["ann:old"])
        #expect(Set(newOffice.passwords.all) == ["ann:new"])
    }

    @Test("a login asks the sources of its plan, whatever the process has put in force")
    func earlyLogin() throws {
        let (old, new) = try (oldOffice.upstream(), newOffice.upstream())
        let (oldSources, newSources) = (Sources("old"), Sources("new", isTold: false))
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: any, plan: .proxy())], upstreams: [plan(old.port, oldSources, generation: 1)]))
        #expect(try proxy.fetch(get()).body == "in")
        try apply(plan(new.port, newSources, generation: 2), to: proxy)
        // The earlier sources answer at once: a login that asked them would end here.
        let caller = try proxy.connect()
        try caller.send(get())
        newSources.isAsked.wait()
        #expect(newOffice.passwords.all.isEmpty)
        newSources.isTold.set()
        #expect(try caller.message().body == "in")
        #expect(Set(newOffice.passwords.all) == ["ann:new"])
    }
}
