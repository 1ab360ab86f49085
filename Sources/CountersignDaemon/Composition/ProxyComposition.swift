// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Curl
internal import HTTPTypes
internal import HTTPWire
internal import Proxy
internal import Secrets
internal import Settings

/// Composition of the proxy's plan from settings.
struct ProxyComposition {
    /// Maximum number of callers of the admin listener, in addition to `limits.callers`.
    private static let adminCallers = 64

    let settings: Settings
    let material: LoginMaterial
    /// Credential sources of the logins. Without any, no login finds a credential.
    var sources = PlanSources(FixedCredentials())
    /// Sockets that the service manager opened, by name.
    var inherited: [String: [Int32]] = [:]
    /// Tokens of callers, which the daemon looks up.
    var callerTokens = CallerTokens()

    /// Returns the plan; `admin` answers requests of the admin listeners. Throws if the settings do not fit this machine.
    func plan(
        admin: any LocalService, accessLog: (any AccessRecorder)? = nil
    ) throws(CompositionError) -> ProxyPlan {
        var listeners: [(ListenPoint, ListenerPlan)] = []
        for listener in settings.listeners {
            let plan = try plan(listener, admin: admin)
            for point in try points(listener.address) { listeners.append((point, plan)) }
        }
        for address in AdminAddresses.of(settings) {
            let plan = ListenerPlan(
                name: "admin \(address)", service: .local(admin), router: Router(fallback: nil),
                hosts: HostPolicy(names: Self.hosts(of: address)), callers: Self.adminCallers,
                isOptional: settings.admin.addresses.isEmpty)
            for point in try points(address) { listeners.append((point, plan)) }
        }
        return ProxyPlan(
            listeners: listeners.map { (point: $0.0, plan: $0.1) }, upstreams: try upstreams(),
            accessLog: accessLog)
    }

    /// Returns the upstreams, with the files of `tls`. Throws if a file cannot be used.
    func upstreams() throws(CompositionError) -> [UpstreamPlan] {
        let challenges = ChallengeIndex(settings.challenges)
        var plans: [UpstreamPlan] = []
        for upstream in settings.upstreams {
            let connections = try upstream.loadedConnections()
            plans.append(
                try plan(
                    upstream, connections, try loginConnections(of: upstream, challenges, connections), challenges))
        }
        return plans
    }

    /// Returns the plan of one upstream with its logins. Throws if `by-user` names a user who does not exist on this machine.
    func plan(
        _ upstream: UpstreamSettings, connections: ConnectionSettings
    ) throws(CompositionError) -> UpstreamPlan {
        try plan(upstream, connections, [:], ChallengeIndex(settings.challenges))
    }

    private func plan(
        _ upstream: UpstreamSettings, _ connections: ConnectionSettings,
        _ loginConnections: [String: ConnectionSettings], _ challenges: ChallengeIndex
    ) throws(CompositionError) -> UpstreamPlan {
        let callers = try CallerIdentities(of: upstream, in: challenges)
        func plan(
            _ credentials: [String: String], _ identities: [(callers: Set<CallerIdentity>, plan: UpstreamPlan)]
        ) -> UpstreamPlan {
            let site = LoginSite(upstream.protected, challenges, credentials: credentials, material)
            let (logins, origins) = site.authenticators()
            return UpstreamPlan(
                name: upstream.name, base: upstream.url, connections: connections,
                timeouts: upstream.timeouts, replay: upstream.replay, forwarding: upstream.forwarding, logins: logins,
                loginOrigins: origins, loginConnections: loginConnections,
                userAgents: userAgents(of: upstream, challenges),
                identities: identities
            ).asking(sources)
        }
        var common = plan(callers.others, callers.named.map { ($0.callers, plan($0.credentials, [])) })
        // One health check serves all callers.
        common.check = upstream.check
        return common
    }

    /// Returns the `User-Agent` of the logins at `upstream` that have one of their own, by challenge.
    private func userAgents(of upstream: UpstreamSettings, _ challenges: ChallengeIndex) -> [String: String] {
        challenges.positions(at: upstream.protected).reduce(into: [:]) { found, position in
            let challenge = challenges.all[position]
            found[challenge.name] = challenge.userAgent ?? challenge.kind.userAgent
        }
    }

    /// Returns the connections of the logins at `upstream` with separate `tls`, by challenge.
    private func loginConnections(
        of upstream: UpstreamSettings, _ challenges: ChallengeIndex, _ connections: ConnectionSettings
    ) throws(CompositionError) -> [String: ConnectionSettings] {
        var found: [String: ConnectionSettings] = [:]
        for position in challenges.positions(at: upstream.protected) {
            let challenge = challenges.all[position]
            guard let (tls, key) = challenge.kind.loginTLS else { continue }
            var own = connections.elsewhere()
            own.tls = tls
            try own.loadFiles(of: "challenges.\(challenge.name).\(key)")
            found[challenge.name] = own
        }
        return found
    }

    /// Returns the rules with which a listener accepts and routes requests.
    ///
    /// `admin` answers for its `health`.
    func plan(
        _ listener: ListenerSettings, admin: (any LocalService)? = nil
    ) throws(CompositionError) -> ListenerPlan {
        var routes: [Router.Route] = []
        for route in listener.routes {
            routes.append(
                Router.Route(
                    host: route.host, path: route.path,
                    methods: route.methods.map { Set($0.map(\.rawValue)) }, users: try UserNumbers.uids(route.users),
                    upstream: route.upstream, stripsPrefix: route.stripPrefix))
        }
        return ListenerPlan(
            name: "\(listener.address)", service: listener.answersAuthRequests ? .authRequests : .proxy,
            router: Router(routes: routes, fallback: listener.upstream),
            hosts: HostPolicy(
                names: listener.hosts + listener.routes.compactMap(\.host) + Self.hosts(of: listener.address)),
            users: try UserNumbers.uids(listener.users), browsers: listener.browsers,
            headLimits: HeadLimits(line: min(8_192, settings.limits.head), head: settings.limits.head),
            callers: listener.callers.limit,
            tokens: listener.callers.tokens.map {
                CallerTokenRule(field: CallerField($0.field.rawName), credentials: $0.credentials, tokens: callerTokens)
            }, health: listener.health.flatMap { path in admin.map { HealthPath(path, of: $0) } })
    }

    private func points(_ address: ListenAddress) throws(CompositionError) -> [ListenPoint] {
        switch address {
        case .systemd(let name):
            guard let descriptors = inherited[name], !descriptors.isEmpty else {
                throw CompositionError(
                    "systemd:\(name): no socket of this name was passed; is the .socket unit active?")
            }
            return descriptors.map { .inherited(descriptor: $0, name: name) }
        case .tcp(let host, let port):
            return [.tcp(host: host, port: port)]
        case .unix(let path, let mode):
            return [.unix(path: path, mode: mode ?? 0o600)]
        }
    }

    private static func hosts(of address: ListenAddress) -> [String] {
        if case .tcp(let host, _) = address, host != "0.0.0.0", host != "::" { [host] } else { [] }
    }
}

/// Error of settings that are valid but cannot be applied on this machine.
struct CompositionError: Error, CustomStringConvertible {
    let description: String
    /// True if the cause may pass by itself, so that another start may succeed.
    let mayPass: Bool

    init(_ description: String, mayPass: Bool = false) {
        self.description = description
        self.mayPass = mayPass
    }

    /// Exit code of a start that fails with this error. The unit does not start the daemon again after `EX_CONFIG`.
    var exitCode: Int32 { mayPass ? EX_UNAVAILABLE : EX_CONFIG }
}

extension ConnectionSettings {
    /// Reads the files of `tls`. Throws if a file cannot be used, and names its key below `name`.
    mutating func loadFiles(of name: String) throws(CompositionError) {
        do {
            let material = try TLSMaterial(tls)
            authorities = material.authorities.map { Blob($0.span) }
            certificate = material.certificate.map { Blob($0.span) }
            key = material.key.map { $0.withBytes { Blob($0) } }
        } catch {
            throw CompositionError("\(name).\(error.key): \(error.reason)", mayPass: error.mayPass)
        }
    }
}

extension UpstreamSettings {
    /// Returns the connection settings with the files of `tls`. Throws if a file cannot be used.
    func loadedConnections() throws(CompositionError) -> ConnectionSettings {
        var connections = connections
        try connections.loadFiles(of: "upstreams.\(name).tls")
        return connections
    }
}
