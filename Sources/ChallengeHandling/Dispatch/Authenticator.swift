// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What is configured to answer a challenge, at some location: what asks for it, what logs in, and what the rest of the program has to know
/// of its kind. Whatever is particular to a kind is said here by the kind; nobody asks for its type.
public struct Authenticator: Sendable {
    /// What makes an exchange ask for the session.
    public enum Trigger: Sendable {
        /// Nothing: its fields are known without a challenge and go along with every request (`inject`).
        case ahead
        /// A response in which this finds a challenge.
        case detected(any ChallengeDetector)

        /// `WWW-Authenticate: Bearer`, of this realm only where one is named (RFC 6750 §3).
        public static func bearer(realm: String?) -> Trigger { .detected(BearerDetector(realm: realm)) }
        /// A MobileFirst resource: Bearer challenges, `insufficient_scope`, `MFP-Conflict`.
        public static var mobileFirst: Trigger { .detected(MobileFirstDetector()) }

        /// What finds its challenges, if it waits for one.
        public var detector: (any ChallengeDetector)? {
            if case .detected(let detector) = self { detector } else { nil }
        }
    }

    /// The challenge's name in the configuration; for a MobileFirst upstream, the upstream's.
    public let name: String
    /// What asks for it.
    public let trigger: Trigger
    /// Whether the session is won before the first request rather than after the first challenge.
    public let isAhead: Bool
    /// Whether the session is won at the start and kept from then on, also while nobody asks for it (`login: at-start`).
    public let isKept: Bool
    /// What its session is held under, with the scope that is asked for where no response named one.
    public let key: SessionKey
    /// The credentials that its answers are made of, by name, for `explain`.
    public let credentials: [String]
    /// The challenges of the configuration whose handlers it asks, by name; none where it is a challenge itself.
    public let asks: [String]
    /// The scope that a request of that method for that path needs, where the path tells it before any response does.
    public let scopeOfRoute: (@Sendable (_ method: String, _ path: String) -> Scope?)?
    /// What ends its sessions at the server; `nil` where the configuration names nothing.
    public let logout: (any SessionLogout)?
    /// Whether servers may take what its session shows for the word of the whole connection, so that no request of another
    /// session may go there (NTLM, Negotiate).
    public let bindsConnections: Bool
    /// True if other nodes can use its sessions: not those that are made anew for each request or connection, which cost no login.
    public let isShareable: Bool
    /// Makes the signers of its sessions anew after a restart.
    public let codec: SignerCodec
    /// True if its login can tell by `confirm` if a session still works that met its challenge.
    public let confirmsSessions: Bool
    /// True if it is the upstream's own, of no challenge of the configuration: its resources say what scope they want, and carry nothing
    /// out until they have it (MobileFirst).
    public let isOfUpstream: Bool
    /// True if its challenge is a page in front of whatever else the server has, which takes the place of the answers that other logins
    /// wait for.
    public let isLoginPage: Bool
    /// The settings that change what its login means, as one text; empty where no configuration made it.
    package var terms = ""
    /// Why those in front of whom it stands get no session; `nil` where they do. Such a login is never run.
    public private(set) var refusal: String?
    /// The security checks that it answers together, where it is the upstream's own.
    package private(set) var checks: [ConfiguredCheck] = []
    /// The fields that each of its credentials has to have, by its name.
    package var requiredFields: [String: Set<String>] = [:]
    /// The origins besides the upstream's that its login may send requests to.
    package private(set) var origins: Set<Origin> = []
    private let makeLogin: @Sendable (LoginOccasion) -> any SessionLogin

    /// A login; `makeLogin` is given what led to it, with the scope to ask for.
    public init(
        name: String, trigger: Trigger, isAhead: Bool, isKept: Bool = false, key: SessionKey, credentials: [String],
        asks: [String] = [], scopeOfRoute: (@Sendable (_ method: String, _ path: String) -> Scope?)? = nil,
        logout: (any SessionLogout)? = nil, bindsConnections: Bool = false, isShareable: Bool = true,
        codec: SignerCodec = .none, confirmsSessions: Bool = false, isOfUpstream: Bool = false,
        isLoginPage: Bool = false,
        makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin
    ) {
        self.bindsConnections = bindsConnections
        self.isShareable = isShareable
        self.codec = codec
        self.confirmsSessions = confirmsSessions
        self.isOfUpstream = isOfUpstream
        self.isLoginPage = isLoginPage
        self.name = name
        self.trigger = trigger
        self.isAhead = isAhead || isKept
        self.isKept = isKept
        self.key = key
        self.credentials = credentials
        self.asks = asks
        self.scopeOfRoute = scopeOfRoute
        self.logout = logout
        self.makeLogin = makeLogin
    }

    /// Whether a user who says `name` means this login.
    public func isMeant(by name: String) -> Bool { self.name == name || asks.contains(name) }

    /// The scope asked for where no response has named another.
    public var defaultScope: Scope { Scope(text: key.scope) }

    /// The scope asked for at a route where no response has named another.
    public func scope(method: String, path: String) -> Scope {
        guard let scope = scopeOfRoute?(method, path) else { return defaultScope }
        return defaultScope.union(scope)
    }

    /// The same for those whom it wins no session for, because of `reason`.
    public func refusing(_ reason: String) -> Authenticator {
        let failure = LoginFailure(.noCredential, challenge: name, detail: reason)
        var login = Authenticator(
            name: name, trigger: trigger, isAhead: trigger.detector == nil, key: key, credentials: [], asks: asks,
            scopeOfRoute: scopeOfRoute, bindsConnections: bindsConnections, isShareable: isShareable,
            isOfUpstream: isOfUpstream, isLoginPage: isLoginPage,
            makeLogin: { _ in RefusingLogin(failure: failure) })
        (login.refusal, login.checks, login.origins, login.terms) = (reason, checks, origins, terms)
        return login
    }

    /// The same, with a login that may send requests to these origins besides the upstream's.
    func sending(to origins: Set<Origin>) -> Authenticator {
        var login = self
        login.origins.formUnion(origins)
        return login
    }

    /// The same, with a login that answers these checks together.
    func answering(_ checks: [ConfiguredCheck]) -> Authenticator {
        var login = self
        login.checks = checks
        return login
    }

    /// The login for that occasion.
    public func login(_ occasion: LoginOccasion) -> any SessionLogin { makeLogin(occasion) }
}

/// Wins nothing.
private struct RefusingLogin: SessionLogin {
    let failure: LoginFailure

    func win(_ conversation: Conversation) async throws(LoginFailure) -> Session { throw failure }
}
