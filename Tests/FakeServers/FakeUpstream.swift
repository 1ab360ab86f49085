// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The upstream of most tests, on one loopback port. It has a MobileFirst server with the adapter `bank`, areas with
/// HTTP Basic, Digest and NTLM, one with a login page, and an open one.
package final class FakeUpstream: Sendable {
    /// The MobileFirst server below `/mfp/api/`: check PinCodeAttempts (PIN 1234, three attempts, blocked 60 s), to
    /// which the scope element `accessRestricted` is mapped.
    package let mobileFirst: FakeMobileFirst
    /// The login page before `/form/`: user ann, password demo.
    package let form: FormLogin
    /// The OAuth 2 server and its resources below `/oauth/`.
    package let oauth: FakeOAuth
    /// The resources below `/checks/` that name a security check themselves: PIN 1234.
    package let checks: CheckArea
    /// The resources below `/worklight/` as a server of Worklight 6.x guards them: PIN 1234.
    package let composite: CompositeArea
    /// The area with HTTP Digest, `/digest/`: user ann, password demo.
    package let digest: DigestArea
    /// The record of all areas.
    package let recorder: Recorder
    /// The planned faults of all areas.
    package let faults: FaultPlan
    /// The server itself.
    package let server: LoopbackServer

    private let areas: Areas
    private let overrides = Overrides()

    /// Creates an upstream on that port of 127.0.0.1 (0 is a free one), not started yet.
    package init(
        port: UInt16 = 0, rules: MobileFirstRules = FakeUpstream.rules, clock: FakeClock = .system
    ) {
        let recorder = Recorder()
        let faults = FaultPlan()
        let mobileFirst = FakeMobileFirst(
            rules: rules, adapters: SampleResources.bank, clock: clock, recorder: recorder, faults: faults)
        let form = FormLogin(contextPath: "/form", clock: clock, recorder: recorder)
        let checks = CheckArea(recorder: recorder)
        let composite = CompositeArea(recorder: recorder)
        let oauth = FakeOAuth(clock: clock, recorder: recorder, faults: faults)
        let areas = Areas(
            mobileFirst: mobileFirst, form: form, oauth: oauth, checks: checks, composite: composite,
            basic: BasicArea(recorder: recorder), digest: DigestArea(recorder: recorder),
            ntlm: NTLMArea(recorder: recorder), recorder: recorder,
            faults: faults)
        self.mobileFirst = mobileFirst
        self.form = form
        self.oauth = oauth
        self.checks = checks
        self.composite = composite
        self.digest = areas.digest
        self.recorder = recorder
        self.faults = faults
        self.areas = areas
        self.server = LoopbackServer(port: port, recorder: recorder) { [overrides] request in
            areas.respond(to: request, override: overrides.handler)
        }
    }

    /// The rules of most tests: PinCodeAttempts as in IBM's sample, with a success that lasts ten minutes.
    package static var rules: MobileFirstRules {
        let properties = SecurityCheck.Properties(maxAttempts: 3, success: 600, blocked: 60)
        var rules = MobileFirstRules(checks: [.pinCodeAttempts(properties), .userLogin()])
        rules.scopeMapping = ["accessRestricted": ["PinCodeAttempts"]]
        return rules
    }

    /// Puts a handler before all areas, which get the requests that it answers with `nil`.
    package func override(_ handler: @escaping @Sendable (FakeRequest) -> FakeResponse?) {
        overrides.set(handler)
    }

    /// Answers a request without a socket.
    package func respond(to request: FakeRequest) -> FakeResponse {
        areas.respond(to: request, override: overrides.handler)
    }

    /// Binds and serves; throws if the port cannot be had.
    package func start() throws(LoopbackServerError) { try server.start() }

    /// Ends every connection and thread; may be started again, and then has the same port.
    package func stop() { server.stop() }

    /// The port it listens on, or is to listen on.
    package var port: UInt16 { server.port }

    /// The address for `upstreams.….url`, by which `/balance` is the balance.
    package var bankURL: String { "http://127.0.0.1:\(port)/mfp/api/adapters/bank/" }
}

/// The handler that precedes all areas, if there is one.
private final class Overrides: Sendable {
    private let current = Mutex<(@Sendable (FakeRequest) -> FakeResponse?)?>(nil)

    var handler: (@Sendable (FakeRequest) -> FakeResponse?)? { current.withLock { $0 } }

    func set(_ handler: @escaping @Sendable (FakeRequest) -> FakeResponse?) {
        current.withLock { $0 = handler }
    }
}

/// The areas on the one port.
private struct Areas: Sendable {
    var mobileFirst: FakeMobileFirst
    var form: FormLogin
    var oauth: FakeOAuth
    var checks: CheckArea
    var composite: CompositeArea
    var basic: BasicArea
    var digest: DigestArea
    var ntlm: NTLMArea
    var recorder: Recorder
    var faults: FaultPlan

    func respond(
        to request: FakeRequest, override: (@Sendable (FakeRequest) -> FakeResponse?)?
    ) -> FakeResponse {
        if let response = override?(request) { return noted(request, response) }
        if request.path.hasPrefix("/form/") {
            return noted(request, faults.apply(at: .form) { formArea(request) })
        }
        if mobileFirst.isResponsible(for: request) { return mobileFirst.respond(to: request) }
        if oauth.isResponsible(for: request) {
            return noted(request, oauth.respond(to: request) { served($0) })
        }
        if request.path.hasPrefix("/checks/") {
            return noted(request, checks.respond(to: request) { served($0) })
        }
        if request.path.hasPrefix("/worklight/") {
            return noted(request, composite.respond(to: request) { served($0) })
        }
        if request.path.hasPrefix("/basic/") {
            let response = faults.apply(at: .basic) { basic.respond(to: request) { served($0) } }
            return noted(request, response)
        }
        if request.path.hasPrefix("/digest/") {
            let response = faults.apply(at: .digest) { digest.respond(to: request) { served($0) } }
            return noted(request, response)
        }
        if request.path.hasPrefix("/ntlm/") {
            return noted(request, ntlm.respond(to: request) { served($0) })
        }
        return noted(request, faults.apply(at: .other) { open(request) })
    }

    private func formArea(_ request: FakeRequest) -> FakeResponse {
        guard request.path != "/form/logout" else {
            form.logout(request)
            return .text(200, "Logged out.\n")
        }
        return form.respond(to: request) { served($0) }
    }

    private func open(_ request: FakeRequest) -> FakeResponse {
        if request.path == "/" { return .text(200, "The tests' upstream.\n") }
        if request.path.hasPrefix("/open/") { return served(request) { SampleResources.open($0, below: "/open/") } }
        return .text(404, "Nothing here.\n")
    }

    private func served(
        _ request: FakeRequest, by resource: (FakeRequest) -> FakeResponse = SampleResources.echo
    ) -> FakeResponse {
        let response = resource(request)
        let hit = Record.Hit(
            method: request.method, path: request.path, size: request.body.count, digest: sha256(request.body))
        recorder.note { $0.hits.append(hit) }
        return response
    }

    private func noted(_ request: FakeRequest, _ response: FakeResponse) -> FakeResponse {
        recorder.note {
            $0.transcript.append(
                Record.Entry(method: request.method, path: request.path, status: response.status))
        }
        return response
    }
}
