// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import EventLoop
import HTTPTypes
import HTTPWire
import Logging
import Proxy
import Synchronization
import TestSupport
import Testing

/// A whole proxy in this process, in front of one upstream.
final class TestProxy {
    let server: ProxyServer
    /// The wall clock.
    let clock = ManualClock()
    /// Clock of the workers' time limits, which stands still until a test lets time pass.
    let time = ManualLoopClock.ringing()
    let log = LoginLog()
    let services: ClientServices

    init(
        workers: Int = 1, limits: WorkerLimits = WorkerLimits(), sessions: SessionLimits = SessionLimits(),
        spool: ReplaySpool? = nil, logger: Logger? = nil, _ plan: ProxyPlan,
        attempts: any AttemptStore = UnkeptAttempts(), credentials: (any CredentialProvider)? = nil,
        credentialVersions: CredentialVersions? = nil,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) throws {
        let clock = clock
        services = ClientServices(
            gate: SharedAttemptGate(limits: sessions, store: attempts, chance: chance, now: { clock.now }),
            state: MemoryState(), wallClock: { clock.now }, chance: chance, observer: log, replay: spool,
            credentialVersions: credentialVersions)
        server = try ProxyServer(
            services: services, workers: workers, limits: limits,
            logger: logger ?? Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }), clock: time)
        var plan = plan
        if let credentials { plan.upstreams = plan.upstreams.map { $0.asking(PlanSources(credentials)) } }
        try server.apply(plan)
    }

    /// Starts a proxy with one listener and one upstream.
    convenience init(
        _ upstream: UpstreamPlan, workers: Int = 1, limits: WorkerLimits = WorkerLimits(),
        sessions: SessionLimits = SessionLimits(), spool: ReplaySpool? = nil,
        router: Router = Router(fallback: "bank"), logger: Logger? = nil,
        attempts: any AttemptStore = UnkeptAttempts(), credentials: (any CredentialProvider)? = nil,
        credentialVersions: CredentialVersions? = nil
    ) throws {
        try self.init(
            workers: workers, limits: limits, sessions: sessions, spool: spool, logger: logger,
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: .proxy(router))], upstreams: [upstream]),
            attempts: attempts, credentials: credentials, credentialVersions: credentialVersions)
    }

    deinit { server.stop() }

    var port: UInt16 { TestSupport.port(of: server.descriptors[0]) }

    /// Connects a caller to the first listener.
    func connect(receiveBuffer: Int32? = nil) throws -> Peer { try Peer(port: port, receiveBuffer: receiveBuffer) }

    /// Sends one request on its own connection, and returns the complete answer.
    func fetch(_ request: String) throws -> (head: String, body: String) {
        let caller = try connect()
        try caller.send(request)
        return try caller.message()
    }

    /// Current counters of the workers.
    var reading: ProxyReading {
        let isThere = Signal()
        server.readings.ask { isThere.set() }
        #expect(isThere.wait(), "the workers' answer")
        return server.readings.latest
    }

    /// Number of exchanges that wait for a login.
    var waiters: Int {
        services.gate.read({ $0.sessions.states(now: clock.now) }).values.reduce(0) { sum, authenticator in
            if case .loggingIn(let waiters, _) = authenticator { sum + waiters } else { sum }
        }
    }

    /// Number of exchanges that wait, also for a request that went ahead.
    var waitingRequests: Int { services.gate.read { $0.sessions.waiterCount } }

    /// Waits until `condition` holds. It is evaluated after every event.
    func wait(_ what: Comment, location: SourceLocation = #_sourceLocation, until condition: () -> Bool) {
        if !Bell.shared.wait(until: condition) {
            Issue.record("waited in vain for \(what)", sourceLocation: location)
        }
    }

    /// Waits until `condition` holds, and lets a step of time pass whenever it does not yet.
    func wait(
        _ what: Comment, passing step: Duration, location: SourceLocation = #_sourceLocation,
        until condition: () -> Bool
    ) {
        wait(what, location: location) {
            if condition() { return true }
            time.advance(by: step)
            return false
        }
    }

    /// Waits until the workers have done everything due at the present time, with all input sent to them so far.
    func settle(location: SourceLocation = #_sourceLocation) {
        #expect(time.settle(), "a worker does not come to rest", sourceLocation: location)
    }

    /// Lets time pass, and waits until everything due in it has happened.
    func pass(_ duration: Duration, location: SourceLocation = #_sourceLocation) {
        #expect(time.pass(duration), "a worker does not come to rest", sourceLocation: location)
    }

    /// Waits until no caller is connected any more. Bytes of refused callers are discarded for two seconds.
    func expectNoConnections(location: SourceLocation = #_sourceLocation) {
        settle()
        if server.figures.openConnections > 0 { pass(.seconds(2)) }
        wait("no connections", location: location) { server.figures.openConnections == 0 }
    }
}

extension ListenerPlan {
    static func proxy(_ router: Router = Router(fallback: "bank")) -> ListenerPlan {
        ListenerPlan(name: "test", service: .proxy, router: router, hosts: HostPolicy())
    }
}

extension UpstreamPlan {
    /// Returns an upstream named `bank` on a port of 127.0.0.1.
    static func bank(
        port: UInt16, path: String = "/", timeouts: Timeouts = Timeouts(),
        replay: ReplayTiers = ReplayTiers(memory: 64 * 1024), forwarding: ForwardingPolicy = ForwardingPolicy(),
        logins: [Authenticator] = []
    ) -> UpstreamPlan {
        var authenticators = Authenticators()
        for login in logins { authenticators.add(login) }
        return UpstreamPlan(
            name: "bank", base: WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: port), path: path),
            timeouts: timeouts, replay: replay, forwarding: forwarding, logins: authenticators)
    }
}

extension Authenticator {
    /// Returns a login named `bank` that runs `body` with the number of the run, from 1.
    static func scripted(
        port: UInt16, trigger: Trigger = .mobileFirst, isAhead: Bool = false, isKept: Bool = false,
        scope: String = "",
        _ body: @escaping @Sendable (Int, Scope, Conversation) async throws(LoginFailure) -> Session
    ) -> Authenticator {
        let counter = LoginCounter()
        return Authenticator(
            name: "bank", trigger: trigger, isAhead: isAhead, isKept: isKept,
            key: SessionKey(
                origin: Origin(scheme: .http, host: "127.0.0.1", port: port), challenge: "bank", credential: "pin",
                scope: scope), credentials: ["pin"], isOfUpstream: trigger.detector is MobileFirstDetector
        ) { occasion in
            ScriptedLogin(counter: counter) { (number, conversation) async throws(LoginFailure) in
                try await body(number, occasion.scope, conversation)
            }
        }
    }
}

/// Returns a request without a body, as callers send it.
func get(_ path: String = "/", _ fields: String = "") -> String {
    "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
}

/// Returns an answer with `Content-Length`.
func answer(_ status: String = "200 OK", _ body: String = "", _ fields: String = "") -> String {
    "HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
}

/// Answer of a MobileFirst resource to a request without a token.
let challenge = answer("401 Unauthorized", "denied", "WWW-Authenticate: Bearer\r\n")
