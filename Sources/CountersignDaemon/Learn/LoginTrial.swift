// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import EventLoop
internal import Learning
internal import Settings
internal import SettingsReading
internal import System

/// One login of a configuration that is in memory only, by the daemon's own code.
struct LoginTrial {
    /// Evidence of one login.
    struct Outcome: Sendable {
        /// The session, or the reason why the login failed.
        var result: Result<Session, LoginFailure>
        /// The responses during the login.
        var exchanges: [RecordedRequests.Exchange] = []
        /// The visit at the address that needs the login, with the session. `nil` if the session cannot be shown there.
        var visit: SiteVisit?
        /// The same under another `User-Agent`, as callers have it.
        var callersVisit: SiteVisit?
    }

    private let plan: UpstreamPlan
    private let login: Authenticator

    /// Reads the configuration as the daemon would. Throws a failure with all problems if `check` would refuse it.
    init(_ lines: [String]) throws {
        let (settings, problems) = Settings.parse(
            Array(lines.joined(separator: "\n").utf8), file: "learned", environment: Process.environment)
        guard let settings else {
            throw Failure(
                "what was learned is not a valid configuration: \(problems.map(\.description).joined(separator: "; "))",
                code: EX_UNAVAILABLE)
        }
        let plans = try ProxyComposition(settings: settings, material: LoginMaterial()).upstreams()
        guard let plan = plans.first, let login = plan.logins.all.first else {
            throw Failure("what was learned has no login on this machine", code: EX_UNAVAILABLE)
        }
        self.plan = plan
        self.login = login
    }

    /// Returns whether the daemon would start this login for a response.
    func isStarted(by response: ExaminedResponse) -> Bool {
        if case .challenged? = login.trigger.detector?.examine(response, hasSession: false) { true } else { false }
    }

    /// Calls `body` with side requests at the upstream of `block`, which has no challenge, so that they carry no secret.
    static func probe<Value: Sendable>(
        _ block: ConfigurationBlock, _ body: @escaping @Sendable (any SideRequests) async -> Value
    ) throws -> Value {
        let text = block.lines().joined(separator: "\n")
        let (settings, problems) = Settings.parse(Array(text.utf8), file: "URL", environment: Process.environment)
        guard let settings else {
            throw Failure(problems.map(\.message).joined(separator: "; "), code: EX_USAGE)
        }
        guard let plan = try ProxyComposition(settings: settings, material: LoginMaterial()).upstreams().first else {
            throw Failure("the address cannot be used", code: EX_USAGE)
        }
        // Nothing secret is sent, so TLS is not demanded.
        var connections = plan.connections
        connections.allowsPlaintext = true
        let open = UpstreamPlan(name: plan.name, base: plan.base, connections: connections, timeouts: plan.timeouts)
        let value = Blocking.run { () -> Value? in
            guard let loop = try? await CommandLoop.start(services: services(report: { _ in })) else { return nil }
            defer { loop.stop() }
            return await body(await loop.anonymousRequests(at: open))
        }
        guard let value else { throw Self.noLoop }
        return value
    }

    /// Runs the login once with that credential, and visits `asked` with its session. `report` gets each step as a line.
    func run(
        _ credential: Credential?, then asked: WebURL, report: @escaping @Sendable (String) -> Void
    ) throws -> Outcome {
        let known = credential.map { [$0.name: $0] } ?? [:]
        let (plan, login) = (plan.asking(PlanSources(HeldCredentials(credentials: known))), login)
        let outcome = Blocking.run { () -> Outcome? in
            let services = Self.services(report: report)
            guard let loop = try? await CommandLoop.start(services: services) else { return nil }
            defer { loop.stop() }
            let sideRequests = await loop.sideRequests(for: login, at: plan)
            let recorded = RecordedRequests(sideRequests, report: report)
            let (result, _) = await services.run(
                login.login(LoginOccasion(scope: login.defaultScope)), for: login.key, asking: plan.sources,
                sideRequests: recorded)
            var outcome = Outcome(result: result, exchanges: recorded.exchanges)
            if case .success(let session) = result, session.signer == nil, session.connection == nil, !session.isEmpty {
                outcome.visit = try? await SiteVisitor(requests: sideRequests, now: SystemClock.wallClock)
                    .visit(asked, with: session)
                if session.cookies != nil {
                    outcome.callersVisit = try? await SiteVisitor(
                        requests: sideRequests, userAgent: "Mozilla/5.0 (countersign learn)",
                        now: SystemClock.wallClock
                    ).visit(asked, with: session)
                }
            }
            return outcome
        }
        guard let outcome else { throw Self.noLoop }
        return outcome
    }

    private static var noLoop: Failure {
        Failure("libcurl, or a thread for it, cannot be started on this machine", code: EX_UNAVAILABLE)
    }

    /// Services of one login. Latches and state exist in memory only.
    private static func services(report: @escaping @Sendable (String) -> Void) -> ClientServices {
        ClientServices(
            gate: SharedAttemptGate(now: SystemClock.wallClock), state: MemoryState(), wallClock: SystemClock.wallClock,
            observer: StepReporter(report: report))
    }
}

/// Credentials of one run of a command.
private struct HeldCredentials: CredentialProvider {
    let credentials: [String: Credential]

    func credential(named name: String) async throws(CredentialError) -> Credential? { credentials[name] }
}

/// Observer that reports the steps of a login as lines, without secrets.
private struct StepReporter: LoginObserver {
    let report: @Sendable (String) -> Void

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) { report(step.text) }
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {}
}
