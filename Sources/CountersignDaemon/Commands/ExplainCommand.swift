// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPTypes
internal import Proxy
internal import Settings

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Show where a local request goes and which challenge handlers apply.",
        discussion: """
            Prints the listener, the route and the upstream of a local URL, and the challenge handlers that apply there, in \
            order, each with the name of its credential. Sends nothing and reads no secret. If `users` or `by-user` \
            distinguish callers, choose one by --user; if tokens do, by --caller. If the daemon is running, also prints which credentials it does not send \
            now, and why.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Argument(help: "The local URL, for example http://127.0.0.1:8080/accounts.")
    var url: String

    @Option(name: .shortAndLong, help: "The method of the request.")
    var method = "GET"

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The user who sends the request, by name or number. Default: no particular user.", valueName: "user"))
    var user: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The caller who sends the request with a token, by the name of the token's credential. Default: no particular caller.",
            valueName: "credential"))
    var caller: String?

    @Flag(name: .long, help: "Print one JSON object.")
    var json = false

    func run() throws {
        let settings = try configuration.load()
        guard let address = WebURL(url) else {
            throw Failure("\(url): not an http or https URL", code: EX_USAGE)
        }
        let user = try user.map(Self.number)
        var explanation: Explanation
        do throws(CompositionError) {
            explanation = try Explanation(
                of: address, method: method, user: user, caller: caller, settings: settings)
        } catch {
            throw Failure(error.description, code: error.exitCode)
        }
        if let status = Self.status(of: settings) { explanation.addRefusals(from: status) }
        if json {
            Process.print(explanation.json)
        } else {
            for line in explanation.lines { Terminal.print(line) }
        }
        if explanation.upstream == nil { throw ExitCode(1) }
    }

    /// Returns the status document of the daemon with these settings; `nil` if no daemon answers.
    private static func status(of settings: Settings) -> JSONValue? {
        for address in AdminAddresses.of(settings) {
            guard case .unix(let path, _) = address else { continue }
            var client = AdminClient(path: path)
            client.timeout = .seconds(2)
            return try? client.send("GET", "/status").body
        }
        return nil
    }

    private static func number(of user: String) throws(Failure) -> UInt32 {
        do throws(CompositionError) {
            return try UserNumbers.uid(of: UInt32(user).map { .uid($0) } ?? .name(user), for: "--user")
        } catch {
            throw Failure(error.description, code: EX_USAGE)
        }
    }
}

/// Listener, route, upstream and handlers of a local request, decided by the daemon's own objects.
struct Explanation {
    /// A handler that is configured for the request.
    struct Handler {
        let challenge: String
        let kind: String
        let credential: String?
        /// Credentials by caller; `nil` if every caller uses `credential`.
        let byCaller: CredentialsByCaller?
    }

    /// The listener's address; `nil` if no listener has the address of the URL.
    private(set) var listener: String?
    /// True if the listener answers auth requests: another proxy asks it, and sends the request itself.
    private(set) var answersAuthRequests = false
    /// Tokens with which the listener identifies callers; `nil` if it needs no tokens.
    private(set) var tokens: CallerTokenSettings?
    /// The route's index in the configuration; `nil` for the listener's own upstream.
    private(set) var route: Int?
    /// The upstream's name; `nil` if the request is refused for `reason`.
    private(set) var upstream: String?
    /// The URL of the request at the upstream.
    private(set) var target: WebURL?
    /// The reason of a refusal.
    private(set) var reason: String?
    /// The handlers, in order.
    private(set) var handlers: [Handler] = []
    /// The caller's uid; `nil` for no particular user.
    let user: UInt32?
    /// The name of the caller's token; `nil` for no particular caller.
    let caller: String?
    /// Refusals by the running daemon's attempt gate, in its own words, by challenge.
    private(set) var refusals: [(challenge: String, words: String)] = []

    /// Adds the closed latches of the handlers from `status`, the document of a running daemon.
    mutating func addRefusals(from status: JSONValue) {
        guard case .array(let latches)? = status["latches"] else { return }
        refusals = latches.compactMap { latch in
            guard let name = latch["challenge"]?.stringValue, handlers.contains(where: { $0.challenge == name }),
                let words = latch["detail"]?.stringValue
            else { return nil }
            return (name, words)
        }
    }

    /// The explanation of a request, sent by the user with the uid `user`, or with the token of `caller`, if given.
    init(
        of url: WebURL, method: String, user: UInt32? = nil, caller: String? = nil, settings: Settings
    ) throws(CompositionError) {
        self.user = user
        self.caller = caller
        guard let found = Self.listener(for: url, settings) else {
            reason = "no listener has this address"
            return
        }
        listener = "\(found.address)"
        answersAuthRequests = found.answersAuthRequests
        tokens = found.callers.tokens
        if let health = found.health, url.path == health {
            reason =
                "the path is the listener's `health`: it is answered here, with the status of /readyz, and never forwarded"
            return
        }
        if let caller, tokens?.credentials.contains(caller) != true {
            reason =
                tokens == nil
                ? "the listener knows no caller by a token"
                : "the listener's `callers` do not include this one (401, caller-not-known)"
            return
        }
        let composition = ProxyComposition(settings: settings, material: LoginMaterial())
        let plan = try composition.plan(found)
        guard plan.hosts.accepts(host: url.origin.host) || Self.isHostFree(found) else {
            reason = "the host is neither a loopback name nor listed in `hosts` (421, host-not-allowed)"
            return
        }
        if let user, let users = plan.users, !users.contains(user) {
            reason = "the listener's `users` do not include this user (403, caller-not-allowed)"
            return
        }
        switch plan.router.decide(host: url.origin.host, path: url.path, method: method, user: user) {
        case .ambiguous: reason = Self.ambiguity
        case .none: reason = "no route matches (404, no-route)"
        case .notAllowed(let number):
            reason =
                "routes[\(number)] matches, but its `users` "
                + (user == nil ? "restrict who may use it: give --user" : "do not include this user")
                + " (403, caller-not-allowed)"
        case .found(let destination):
            guard let settings = settings.upstream(named: destination.upstream) else {
                reason = "there is no upstream \(destination.upstream)"
                return
            }
            // The files of `tls` are not read: perhaps only the daemon's user can.
            let upstreamPlan = try composition.plan(settings, connections: ConnectionSettings())
            let challenges = ChallengeIndex(composition.settings.challenges)
            let callers = try CallerIdentities(of: settings, in: challenges)
            // A listener with tokens identifies its callers by these only.
            let identity: CallerIdentity? =
                tokens == nil ? user.map { .user($0) } : caller.map { .token($0) }
            let own = identity.flatMap { one in callers.named.first { $0.callers.contains(one) }?.credentials }
            let rest = Array(url.path.utf8.dropFirst(destination.stripped))
            guard ChallengesByPath.agree(on: rest.span, at: upstreamPlan.plan(for: identity)) else {
                reason = Self.ambiguity
                return
            }
            route = destination.route
            upstream = destination.upstream
            let path = String(url.path.utf8.dropFirst(destination.stripped)) ?? url.path
            let target = settings.url.appending(path: path)
            self.target = WebURL(origin: target.origin, path: target.path, query: url.query)
            handlers = Self.handlers(
                at: Location(target), logins: upstreamPlan.logins,
                challenges: challenges.all.map { $0.choosing(own ?? callers.others) }, isOneCaller: identity != nil)
        }
    }

    private static let ambiguity =
        "servers could read its path in ways that match different routes or challenges (400, bad-request)"

    /// Returns true if the listener accepts any host name: no browser can connect to a Unix socket.
    private static func isHostFree(_ listener: ListenerSettings) -> Bool {
        guard case .unix = listener.address else { return false }
        return !listener.answersAuthRequests && listener.routes.allSatisfy { $0.host == nil }
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
        // A URL cannot name a Unix socket, or a socket of systemd.
        let nameless = settings.listeners.first {
            if case .tcp = $0.address { false } else { true }
        }
        return sameAddress ?? samePort ?? nameless
    }

    private static func handlers(
        at location: Location, logins: Authenticators, challenges: [ChallengeSettings], isOneCaller: Bool
    ) -> [Handler] {
        var handlers: [Handler] = []
        func add(_ challenge: String, _ kind: String, _ credential: String?) {
            let settings = challenges.first { $0.name == challenge }
            let byCaller = settings?.credentialsByCaller
            if isOneCaller, byCaller != nil {
                let own = settings?.lacksCredential == true ? nil : settings?.credential
                let kind = own == nil ? "\(kind), no credential for this caller (403, caller-not-allowed)" : kind
                handlers.append(Handler(challenge: challenge, kind: kind, credential: own, byCaller: nil))
                return
            }
            handlers.append(
                Handler(
                    challenge: challenge, kind: kind, credential: byCaller == nil ? credential : byCaller?.others,
                    byCaller: byCaller))
        }
        for login in logins.matching(location) {
            let kind = login.trigger.detector?.kind ?? "inject"
            add(login.name, kind, login.isOfUpstream ? nil : login.credentials.first)
            for check in login.checks { add(check.name, "security check \(check.check)", check.credential) }
        }
        return handlers
    }
}

extension Explanation {
    /// The explanation as text.
    var lines: [String] {
        var lines = user.map { ["user      \($0)"] } ?? []
        if let caller { lines.append("caller    \(caller)") }
        lines.append(
            "listener  \(listener ?? "none")\(answersAuthRequests ? ", an auth-request listener: the asking proxy sends the request itself" : "")"
        )
        if let tokens { lines.append("callers   by token in \(tokens.text)") }
        if let upstream {
            lines.append("route     \(route.map { "routes[\($0)]" } ?? "the listener's upstream")")
            lines.append("upstream  \(upstream)")
            if let target { lines.append("address   \(target.origin)\(target.path)") }
        }
        if let reason { lines.append("nowhere   \(reason)") }
        for (number, handler) in handlers.enumerated() {
            lines.append(
                "\(number == 0 ? "handlers " : "         ") \(handler.challenge): \(handler.kind)\(handler.credentialText)"
            )
        }
        for refusal in refusals { lines.append("refused   \(refusal.challenge): \(refusal.words)") }
        if upstream != nil, handlers.isEmpty { lines.append("handlers  none: every response is passed unchanged") }
        return lines
    }

    var json: JSONValue {
        [
            "user": user.map { .integer(Int64($0)) } ?? .null,
            "caller": caller.map { .string($0) } ?? .null,
            "callers": tokens.map {
                [
                    "field": .string($0.field.rawName), "credentials": .array($0.credentials.map { .string($0) }),
                ]
            } ?? .null,
            "listener": listener.map { .string($0) } ?? .null,
            "auth_requests": .bool(answersAuthRequests),
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
                    for (key, entries) in $0.entriesByKind where !entries.isEmpty {
                        object[key] = .object(
                            Dictionary(
                                entries.map { ("\($0.caller)", .string($0.credential)) },
                                uniquingKeysWith: { first, _ in first }))
                    }
                    return .object(object)
                }),
        ]
    }
}

extension Explanation.Handler {
    /// The credential, as the text after the kind.
    fileprivate var credentialText: String {
        guard let byCaller else { return credential.map { ", credential \($0)" } ?? "" }
        let named = byCaller.named.map { "\($0.caller) \($0.credential)" }
        let isByUser = entriesByKind[1].entries.isEmpty
        return ", credential by \(isByUser ? "user" : "caller"): "
            + (named + ["others \(byCaller.others ?? "none")"]).joined(separator: ", ")
    }

    /// The credentials of users, and those of callers with tokens, by their keys in JSON.
    fileprivate var entriesByKind: [(key: String, entries: [CredentialsByCaller.Entry])] {
        let named = byCaller?.named ?? []
        func isUser(_ entry: CredentialsByCaller.Entry) -> Bool {
            if case .user = entry.caller { true } else { false }
        }
        return [("by_user", named.filter(isUser)), ("by_caller", named.filter { !isUser($0) })]
    }
}
