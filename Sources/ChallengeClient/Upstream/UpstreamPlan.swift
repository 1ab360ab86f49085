// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import HTTPWire

/// How one upstream is reached, and what stands ready there. Immutable; shared by all workers; a reload makes new ones.
package struct UpstreamPlan: Sendable {
    /// The time limits of an exchange.
    package struct Timeouts: Sendable {
        /// For a connection, TLS included.
        package var connect: Duration
        /// Until the final response head, from when the request is sent.
        package var response: Duration
        /// Between two pieces of the response's body.
        package var idle: Duration
        /// For a login as a whole, and for an exchange that waits for one.
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
    /// The address that requests' paths are appended to.
    package let base: WebURL
    /// How connections are made.
    package let connections: ConnectionSettings
    /// The time limits.
    package let timeouts: Timeouts
    /// How much of a request's body is kept for sending it again.
    package let replay: ReplayTiers
    /// What it is told of callers' requests.
    package let forwarding: ForwardingPolicy
    /// What stands ready.
    package let logins: Authenticators
    /// Where conversations may send requests: the upstream and the login addresses that the configuration names.
    package let loginOrigins: Set<Origin>
    /// True if secrets may go to the upstream. The configuration is refused where they would and must not; this stands
    /// behind that.
    let carriesSecrets: Bool
    /// What it is asked from time to time, to know whether it serves; `nil`: nothing.
    package var check: UpstreamCheckPlan?
    /// The scopes that its resources have named.
    let learned = LearnedScopes()
    /// The routes at which sessions just won were refused.
    /// What it is to callers for whom its challenges have other credentials than for the rest.
    package let identities: [UpstreamPlan]
    /// Which of them is whose, by uid.
    private let identityOfUser: [UInt32: Int]
    /// The base path without the slash at its end, as bytes.
    package let basePath: [UInt8]

    /// A plan.
    package init(
        name: String, base: WebURL, connections: ConnectionSettings = ConnectionSettings(),
        timeouts: Timeouts = Timeouts(), replay: ReplayTiers = ReplayTiers(memory: 64 * 1024, disk: 16 * 1024 * 1024),
        forwarding: ForwardingPolicy = ForwardingPolicy(),
        logins: Authenticators = Authenticators(), loginOrigins: Set<Origin> = [],
        identities: [(users: Set<UInt32>, plan: UpstreamPlan)] = []
    ) {
        self.identities = identities.map(\.plan)
        identityOfUser = Dictionary(
            identities.enumerated().flatMap { number, identity in identity.users.map { ($0, number) } },
            uniquingKeysWith: { first, _ in first })
        self.name = name
        self.base = base
        self.connections = connections
        carriesSecrets = connections.mayCarrySecrets(to: base.origin)
        self.timeouts = timeouts
        self.replay = replay
        self.forwarding = forwarding
        self.logins = logins
        self.loginOrigins = loginOrigins.union([base.origin])
        basePath = Array((base.path.hasSuffix("/") ? base.path.dropLast() : Substring(base.path)).utf8)
    }

    /// True if it takes the caller's uid to know what stands ready.
    package var dependsOnCaller: Bool { !identities.isEmpty }

    /// The number among `identities` of what it is to that user; `nil`: this plan itself.
    func identity(of user: UInt32?) -> Int? { user.flatMap { identityOfUser[$0] } }

    /// What it is to that user; `nil`: to a caller who is no user of this machine.
    package func plan(for user: UInt32?) -> UpstreamPlan { identity(of: user).map { identities[$0] } ?? self }

    /// What it is to anybody: this plan and those of the callers with an identity of their own.
    package var forEverybody: [UpstreamPlan] { [self] + identities }

    /// Writes the request target: the base path, then the caller's path and query as they came (no
    /// decoding, no removal of dot segments).
    package func writeTarget(_ path: Span<UInt8>, into target: inout ByteQueue) {
        // `*` of OPTIONS asks about the server and not about a path of it (RFC 9112 §3.2.4).
        if path.count == 1, path[0] == UInt8(ascii: "*") {
            target.append(path)
            return
        }
        target.append(basePath)
        // An absolute target without a path, or a path of which nothing was left, is the root (RFC 9112 §3.2.1).
        if path.isEmpty || path[0] != UInt8(ascii: "/") { target.append(UInt8(ascii: "/")) }
        target.append(path)
    }
}
