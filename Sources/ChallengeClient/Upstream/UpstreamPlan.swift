// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CVersion
package import ChallengeHandling
package import HTTPWire

/// The configuration of one upstream: connections, limits, logins. Immutable and shared by all workers; a reload makes
/// new ones.
package struct UpstreamPlan: Sendable {
    /// The time limits of an exchange.
    package struct Timeouts: Sendable, Equatable {
        /// Time for a connection, TLS included.
        package var connect: Duration
        /// Time from sending the request to the final response head.
        package var response: Duration
        /// Between two pieces of the response's body.
        package var idle: Duration
        /// Time for a login as a whole, and for an exchange that waits for a login.
        package var login: Duration

        /// The defaults of the configuration.
        package init(
            connect: Duration = .seconds(5), response: Duration = .seconds(60), idle: Duration = .seconds(300),
            login: Duration = .seconds(60)
        ) {
            self.connect = connect
            self.response = response
            self.idle = idle
            self.login = login
        }
    }

    /// The name in the configuration.
    package let name: String
    /// The URL that requests' paths are appended to.
    package let base: WebURL
    /// The connection settings.
    package let connections: ConnectionSettings
    /// The time limits.
    package let timeouts: Timeouts
    /// The limits of held request bodies.
    package let replay: ReplayTiers
    /// The forwarding of `Host` and of the caller's identity and credentials.
    package let forwarding: ForwardingPolicy
    /// The configured logins.
    package let logins: Authenticators
    /// The origins that login conversations may send requests to: the upstream and the configured login URLs.
    package let loginOrigins: Set<Origin>
    /// The connections of logins with separate TLS settings.
    private let loginConnections: LoginConnections
    /// The `User-Agent` of the logins with a configured one, by name.
    private let userAgents: [String: String]
    /// True if secrets may be sent to the upstream. A second line of defence: the configuration is refused if secrets
    /// would be sent and must not.
    let carriesSecrets: Bool
    /// The configured health check, if any.
    package var check: UpstreamCheckPlan?
    /// The scopes that its resources have named.
    let learned = LearnedScopes()
    /// The credential sources of its logins. Without any, no login finds a credential.
    package private(set) var sources = PlanSources(FixedCredentials())
    /// The upstream's variants for callers whose challenges use other credentials.
    package private(set) var identities: [UpstreamPlan]
    /// The index of a variant, by caller.
    private let indexOfCaller: [CallerIdentity: Int]
    /// True if `aws-chunked` bodies may be decoded.
    package let decodesChunks: Bool
    /// The base path without the slash at its end, as bytes.
    package let basePath: [UInt8]

    /// Creates a plan.
    package init(
        name: String, base: WebURL, connections: ConnectionSettings = ConnectionSettings(),
        timeouts: Timeouts = Timeouts(), replay: ReplayTiers = .standard,
        forwarding: ForwardingPolicy = ForwardingPolicy(),
        logins: Authenticators = Authenticators(), loginOrigins: Set<Origin> = [],
        loginConnections: [String: ConnectionSettings] = [:], userAgents: [String: String] = [:],
        identities: [(callers: Set<CallerIdentity>, plan: UpstreamPlan)] = []
    ) {
        self.identities = identities.map(\.plan)
        indexOfCaller = Dictionary(
            identities.enumerated().flatMap { number, identity in identity.callers.map { ($0, number) } },
            uniquingKeysWith: { first, _ in first })
        self.name = name
        self.base = base
        self.connections = connections
        carriesSecrets = connections.mayCarrySecrets(to: base.origin)
        self.timeouts = timeouts
        self.replay = replay
        self.forwarding = forwarding
        self.logins = logins
        decodesChunks = logins.all.contains { $0.decodesChunks }
        self.loginConnections = LoginConnections(loginConnections, of: logins)
        self.userAgents = userAgents
        self.loginOrigins = loginOrigins.union([base.origin])
        basePath = Array((base.path.hasSuffix("/") ? base.path.dropLast() : Substring(base.path)).utf8)
    }

    /// Returns the plan with the credential sources of its logins, for all callers.
    package func asking(_ sources: PlanSources) -> UpstreamPlan {
        var plan = self
        plan.sources = sources
        plan.identities = identities.map { $0.asking(sources) }
        return plan
    }

    /// Returns the settings of connections to `origin` for requests of the login named `login`; nil means any login.
    ///
    /// The upstream's own certificates and keys are for its origin. Another login server gets the settings of its
    /// login, or the defaults with the same proxy.
    func connections(to origin: Origin, of login: String?) -> ConnectionSettings {
        if let own = loginConnections.settings(for: origin, of: login) { return own }
        return origin == base.origin ? connections : connections.elsewhere()
    }

    /// Returns the `User-Agent` of all requests of the login named `login`.
    func userAgent(of login: String) -> String { userAgents[login] ?? Self.product }

    /// The daemon and its version, for requests of its own (RFC 9110 §10.1.5).
    static let product = unsafe "countersign/\(String(cString: countersign_version()))"

    /// True if the caller decides which credentials are used.
    package var dependsOnCaller: Bool { !identities.isEmpty }

    /// Returns the index in `identities` of that caller's variant; `nil` for this plan itself.
    func index(of caller: CallerIdentity?) -> Int? { caller.flatMap { indexOfCaller[$0] } }

    /// Returns the variant for that caller; `nil` means an unknown one.
    package func plan(for caller: CallerIdentity?) -> UpstreamPlan { index(of: caller).map { identities[$0] } ?? self }

    /// This plan and its variants.
    package var forEverybody: [UpstreamPlan] { [self] + identities }

    /// Writes the request target: the base path, then the caller's path and query unchanged.
    ///
    /// Nothing is decoded, and no dot segments are removed.
    package func writeTarget(_ path: Span<UInt8>, into target: inout ByteQueue) {
        // `*` of OPTIONS is about the server, not about a path (RFC 9112 §3.2.4).
        if path.count == 1, path[0] == UInt8(ascii: "*") {
            target.append(path)
            return
        }
        target.append(basePath)
        // An absolute target without a path, or with nothing left of the path, is the root (RFC 9112 §3.2.1).
        if path.isEmpty || path[0] != UInt8(ascii: "/") { target.append(UInt8(ascii: "/")) }
        target.append(path)
    }
}

/// The forwarding of `Host`, of callers' credentials, and of the caller's identity.
package struct ForwardingPolicy: Sendable, Equatable {
    /// The `Host` to send (RFC 9110 §7.2).
    package enum Host: String, Sendable, CaseIterable {
        /// The upstream's own authority.
        case upstream
        /// The caller's, or the upstream's for HTTP/1.0 without one.
        case pass
    }

    /// The handling of a caller's own `Authorization`.
    package enum CallerCredentials: String, Sendable, CaseIterable {
        /// Forwarded, unless a session has a field of the same name.
        case replace
        /// Forwarded in place of any session's; challenges pass to the caller.
        case keep
        /// The request is refused.
        case refuse
    }

    /// The fields that name the caller to the upstream.
    package enum Caller: String, Sendable, CaseIterable {
        /// No fields are added; such fields from the caller pass unchanged.
        case none
        /// `Forwarded` (RFC 7239), appended to existing ones.
        case forwarded
        /// `X-Forwarded-For`, appended to existing ones; `-Proto` and `-Host` replace existing ones.
        case xForwarded = "x-forwarded"
    }

    /// The `Host` to send.
    package var host = Host.upstream
    /// The handling of a caller's own `Authorization`.
    package var callerCredentials = CallerCredentials.replace
    /// The fields that name the caller to the upstream.
    package var caller = Caller.none

    /// The defaults of the configuration.
    package init(
        host: Host = .upstream, callerCredentials: CallerCredentials = .replace, caller: Caller = .none
    ) {
        self.host = host
        self.callerCredentials = callerCredentials
        self.caller = caller
    }
}

/// Connections of the logins with separate TLS settings, at the origins of their servers.
struct LoginConnections: Sendable {
    private let all: [(login: String, origins: Set<Origin>, settings: ConnectionSettings)]

    /// Collects the settings of logins by name. Each applies to the origins of the login's own servers only.
    init(_ settings: [String: ConnectionSettings], of logins: Authenticators) {
        all = settings.sorted { $0.key < $1.key }.map { name, settings in
            (name, logins.all.filter { $0.name == name }.reduce([]) { $0.union($1.origins) }, settings)
        }
    }

    /// Returns the settings of that login for `origin`, or of any login if `login` is nil. Nil without separate
    /// settings.
    func settings(for origin: Origin, of login: String?) -> ConnectionSettings? {
        all.first { (login == nil || $0.login == login) && $0.origins.contains(origin) }?.settings
    }
}

/// The credential sources of one configuration, for the logins at its upstreams.
///
/// They are part of an upstream's plan, so that both are replaced at once. If they were a service of the process, a login
/// during a reload could send a value of the old sources to a new upstream.
package struct PlanSources: Sendable {
    /// The sources.
    package let credentials: any CredentialProvider
    /// The number of the configuration, which rises with each reload.
    package let generation: UInt64

    /// The sources of the configuration of that number.
    package init(_ credentials: any CredentialProvider, generation: UInt64 = 0) {
        self.credentials = credentials
        self.generation = generation
    }
}
