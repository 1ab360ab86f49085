// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Proxy
internal import Settings

/// The way of a local request, decided by the very objects that the daemon decides by.
struct Explanation {
    /// A handler that stands ready.
    struct Handler {
        let challenge: String
        let kind: String
        let credential: String?
        /// Whose credential is another, where the caller decides.
        let byUser: CredentialsByUser?
    }

    /// The listener's address; `nil`: none listens there.
    private(set) var listener: String?
    /// True if that listener is an authority: another proxy asks it about the request, and sends it itself.
    private(set) var isAuthority = false
    /// The route's number in the configuration, from 0; `nil`: the listener's own upstream.
    private(set) var route: Int?
    /// The upstream's name; `nil`: the request goes nowhere, for `reason`.
    private(set) var upstream: String?
    /// The address that the request goes to.
    private(set) var target: WebURL?
    /// The reason why it goes nowhere.
    private(set) var reason: String?
    /// The handlers in their order.
    private(set) var handlers: [Handler] = []
    /// The caller's uid; `nil`: nobody in particular.
    let user: UInt32?
    /// The refusals of the running daemon's attempt gate at the handlers, in its own words, by the challenge.
    private(set) var refusals: [(challenge: String, words: String)] = []

    /// Takes over what `status`, the document of a running daemon, says of the latches of the handlers.
    mutating func take(_ status: JSONValue) {
        guard case .array(let latches)? = status["latches"] else { return }
        refusals = latches.compactMap { latch in
            guard let name = latch["challenge"]?.stringValue, handlers.contains(where: { $0.challenge == name }),
                let words = latch["detail"]?.stringValue
            else { return nil }
            return (name, words)
        }
    }

    /// `user`: the uid of the caller, where it is to be that one's request.
    init(
        of url: WebURL, method: String, user: UInt32? = nil, settings: Settings
    ) throws(CompositionError) {
        self.user = user
        guard let found = Self.listener(for: url, settings) else {
            reason = "no listener has that address"
            return
        }
        listener = "\(found.address)"
        isAuthority = found.isAuthority
        let composition = ProxyComposition(settings: settings, material: LoginMaterial())
        let plan = try composition.plan(found)
        guard plan.hosts.accepts(host: url.origin.host) || Self.isHostFree(found) else {
            reason = "the host is neither a loopback name nor under `hosts` (421, host-not-allowed)"
            return
        }
        if let user, let users = plan.users, !users.contains(user) {
            reason = "the listener's `users` do not have this one (403, caller-not-allowed)"
            return
        }
        switch plan.router.decide(host: url.origin.host, path: url.path, method: method, user: user) {
        case .ambiguous: reason = Self.ambiguity
        case .none: reason = "no route takes it (404, no-route)"
        case .notAllowed(let number):
            reason =
                "routes[\(number)] takes it, and its `users` "
                + (user == nil ? "decide: say --user" : "do not have this one") + " (403, caller-not-allowed)"
        case .found(let destination):
            guard let settings = settings.upstream(named: destination.upstream) else {
                reason = "there is no upstream \(destination.upstream)"
                return
            }
            // Without the files of `tls`, which only the daemon's user may be able to read.
            let upstreamPlan = try composition.plan(settings, connections: ConnectionSettings())
            let callers = try CallerIdentities(of: settings, in: composition.settings)
            let own = user.flatMap { user in callers.named.first { $0.users.contains(user) }?.settings }
            let rest = Array(url.path.utf8.dropFirst(destination.stripped))
            guard CredentialReadings.agree(on: rest.span, at: upstreamPlan.plan(for: user)) else {
                reason = Self.ambiguity
                return
            }
            route = destination.route
            upstream = destination.upstream
            let path = String(url.path.utf8.dropFirst(destination.stripped)) ?? url.path
            let target = settings.url.appending(path: path)
            self.target = WebURL(origin: target.origin, path: target.path, query: url.query)
            handlers = Self.handlers(
                at: Location(target), logins: upstreamPlan.logins, challenges: (own ?? callers.others).challenges,
                isOneUser: user != nil)
        }
    }

    private static let ambiguity =
        "servers read its path in ways that lead to routes or challenges that differ (400, bad-request)"

    /// Returns whether the listener accepts any host name: no browser reaches a Unix socket.
    private static func isHostFree(_ listener: ListenerSettings) -> Bool {
        guard case .unix = listener.address else { return false }
        return !listener.isAuthority && listener.routes.allSatisfy { $0.host == nil }
    }

    private static func listener(for url: WebURL, _ settings: Settings) -> ListenerSettings? {
        let sameAddress = settings.listeners.first {
            if case .tcp(let host, let port) = $0.address {
                port == url.origin.port && host == url.origin.host
            } else {
                false
            }
        }
        let samePort = settings.listeners.first {
            if case .tcp(_, let port) = $0.address { port == url.origin.port } else { false }
        }
        // Unix sockets and those of systemd have no address that a URL could name.
        let nameless = settings.listeners.first {
            if case .tcp = $0.address { false } else { true }
        }
        return sameAddress ?? samePort ?? nameless
    }

    private static func handlers(
        at location: Location, logins: Authenticators, challenges: [ChallengeSettings], isOneUser: Bool
    ) -> [Handler] {
        var handlers: [Handler] = []
        func add(_ challenge: String, _ kind: String, _ credential: String?) {
            let settings = challenges.first { $0.name == challenge }
            let byUser = settings?.credentialsByUser
            if isOneUser, byUser != nil {
                let own = settings?.isForNobody == true ? nil : settings?.credential
                let kind = own == nil ? "\(kind), no credential for this user (403, caller-not-allowed)" : kind
                handlers.append(Handler(challenge: challenge, kind: kind, credential: own, byUser: nil))
                return
            }
            handlers.append(
                Handler(
                    challenge: challenge, kind: kind, credential: byUser == nil ? credential : byUser?.others,
                    byUser: byUser))
        }
        for login in logins.standing(at: location) {
            let kind = login.trigger.detector?.kind ?? "inject"
            add(login.name, kind, login.isOfUpstream ? nil : login.credentials.first)
            for check in login.checks { add(check.name, "security check \(check.check)", check.credential) }
        }
        return handlers
    }
}

extension Explanation {
    /// For people.
    var lines: [String] {
        var lines = user.map { ["user      \($0)"] } ?? []
        lines.append(
            "listener  \(listener ?? "none")\(isAuthority ? ", an authority: the proxy that asks it sends the request" : "")"
        )
        if let upstream {
            lines.append("route     \(route.map { "routes[\($0)]" } ?? "the listener's upstream")")
            lines.append("upstream  \(upstream)")
            if let target { lines.append("address   \(target.origin)\(target.path)") }
        }
        if let reason { lines.append("nowhere   \(reason)") }
        for (number, handler) in handlers.enumerated() {
            lines.append(
                "\(number == 0 ? "handlers " : "         ") \(handler.challenge): \(handler.kind)\(handler.use)")
        }
        for refusal in refusals { lines.append("refused   \(refusal.challenge): \(refusal.words)") }
        if upstream != nil, handlers.isEmpty { lines.append("handlers  none: every response passes as it comes") }
        return lines
    }

    /// For programs.
    var json: JSONValue {
        [
            "user": user.map { .integer(Int64($0)) } ?? .null,
            "listener": listener.map { .string($0) } ?? .null,
            "authority": .bool(isAuthority),
            "route": route.map { .integer(Int64($0)) } ?? .null,
            "upstream": upstream.map { .string($0) } ?? .null,
            "address": target.map { .string("\($0.origin)\($0.path)") } ?? .null,
            "reason": reason.map { .string($0) } ?? .null,
            "handlers": .array(
                handlers.map {
                    var object: [String: JSONValue] = [
                        "challenge": .string($0.challenge), "kind": .string($0.kind),
                        "credential": $0.credential.map { .string($0) } ?? .null,
                    ]
                    let name = $0.challenge
                    if let refusal = refusals.first(where: { $0.challenge == name }) {
                        object["refused"] = .string(refusal.words)
                    }
                    if let byUser = $0.byUser {
                        object["by_user"] = .object(
                            Dictionary(
                                byUser.named.map { ("\($0.user)", .string($0.credential)) },
                                uniquingKeysWith: { first, _ in first }))
                    }
                    return .object(object)
                }),
        ]
    }
}

extension Explanation.Handler {
    /// Its credential, behind its kind.
    fileprivate var use: String {
        guard let byUser else { return credential.map { ", credential \($0)" } ?? "" }
        let named = byUser.named.map { "\($0.user) \($0.credential)" }
        return ", credential by user: \((named + ["others \(byUser.others ?? "none")"]).joined(separator: ", "))"
    }
}
