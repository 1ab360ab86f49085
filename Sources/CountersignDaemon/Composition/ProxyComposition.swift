// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire
internal import Proxy
internal import Settings

/// From settings to the proxy's plan.
struct ProxyComposition {
    /// The most callers of the admin listener, for whom there is room beside `limits.callers`.
    private static let adminCallers = 64

    let settings: Settings
    let material: LoginMaterial
    /// The sockets that the service manager opened, by name.
    var inherited: [String: [Int32]] = [:]

    /// The plan; `admin` answers on the admin listeners. Throws a problem in words.
    func plan(
        admin: any LocalService, accessLog: (any AccessRecorder)? = nil
    ) throws(CompositionError) -> ProxyPlan {
        var listeners: [(ListenPoint, ListenerPlan)] = []
        for listener in settings.listeners {
            let plan = try plan(listener)
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

    /// The upstreams alone, for commands that open no listener. Reads the files of `tls`; throws where one cannot be used.
    func upstreams() throws(CompositionError) -> [UpstreamPlan] {
        var plans: [UpstreamPlan] = []
        for upstream in settings.upstreams {
            plans.append(try plan(upstream, connections: try ConnectionSettings(upstream)))
        }
        return plans
    }

    /// The way to one upstream, and the logins that stand ready there. Throws where `by-user` names nobody of this machine.
    func plan(
        _ upstream: UpstreamSettings, connections: ConnectionSettings
    ) throws(CompositionError) -> UpstreamPlan {
        let callers = try CallerIdentities(of: upstream, in: settings)
        let identities = callers.named.map { identity in
            (users: identity.users, plan: plan(upstream, connections, identity.settings, []))
        }
        var common = plan(upstream, connections, callers.others, identities)
        // Once for all callers.
        common.check = upstream.check.map {
            UpstreamCheckPlan(path: $0.path, statuses: $0.statuses, period: $0.period)
        }
        return common
    }

    private func plan(
        _ upstream: UpstreamSettings, _ connections: ConnectionSettings, _ settings: Settings,
        _ identities: [(users: Set<UInt32>, plan: UpstreamPlan)]
    ) -> UpstreamPlan {
        let (logins, origins) = LoginSite(upstream.protected, settings.challenges, material).authenticators()
        return UpstreamPlan(
            name: upstream.name, base: upstream.url, connections: connections,
            timeouts: .init(
                connect: upstream.timeouts.connect, response: upstream.timeouts.response, idle: upstream.timeouts.idle,
                login: upstream.timeouts.login),
            replay: ReplayTiers(memory: upstream.replay.memory, disk: upstream.replay.disk),
            forwarding: ForwardingPolicy(upstream), logins: logins, loginOrigins: origins, identities: identities)
    }

    /// The rules by which a listener lets requests in, and sends them on.
    func plan(_ listener: ListenerSettings) throws(CompositionError) -> ListenerPlan {
        var routes: [Router.Route] = []
        for route in listener.routes {
            routes.append(
                Router.Route(
                    host: route.host, path: route.path,
                    methods: route.methods.map { Set($0.map(\.rawValue)) }, users: try UserNumbers.uids(route.users),
                    upstream: route.upstream, stripsPrefix: route.stripPrefix))
        }
        return ListenerPlan(
            name: "\(listener.address)", service: listener.isAuthority ? .authority : .proxy,
            router: Router(routes: routes, fallback: listener.upstream),
            hosts: HostPolicy(
                names: listener.hosts + listener.routes.compactMap(\.host) + Self.hosts(of: listener.address)),
            users: try UserNumbers.uids(listener.users), browsers: BrowserRule(listener.browsers),
            headLimits: HeadLimits(line: min(8_192, settings.limits.head), head: settings.limits.head),
            callers: listener.callers)
    }

    private func points(_ address: ListenAddress) throws(CompositionError) -> [ListenPoint] {
        switch address {
        case .systemd(let name):
            guard let descriptors = inherited[name], !descriptors.isEmpty else {
                throw CompositionError(
                    "systemd:\(name): no socket of that name was passed; is the .socket unit active?")
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

extension BrowserRule {
    fileprivate init(_ policy: BrowserPolicy) {
        self =
            switch policy {
            case .allow: .allow
            case .origins(let origins): .origins(Set(origins))
            case .refuse: .refuse
            }
    }
}

extension ForwardingPolicy {
    /// The policy of an upstream's settings.
    fileprivate init(_ upstream: UpstreamSettings) {
        self.init()
        host =
            switch upstream.host {
            case .pass: .pass
            case .upstream: .upstream
            }
        callerCredentials =
            switch upstream.callerCredentials {
            case .keep: .keep
            case .refuse: .refuse
            case .replace: .replace
            }
        caller =
            switch upstream.forwarded {
            case .forwarded: .forwarded
            case .none: .none
            case .xForwarded: .xForwarded
            }
    }
}

/// Settings that are right in themselves but not on this machine.
struct CompositionError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
