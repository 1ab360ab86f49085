// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Configured answer to a challenge: its detector, its login, and all properties of its kind.
///
/// Each kind sets these properties itself; no code depends on the type of a kind.
public struct Authenticator: Sendable {
    /// Condition under which an exchange requests the session.
    public enum Trigger: Sendable {
        /// None: its fields are known without a challenge and are added to every request (`inject`).
        case ahead
        /// A response in which the detector finds a challenge.
        case detected(any ChallengeDetector)

        /// Detects `WWW-Authenticate: Bearer`, of one realm if `realm` is given (RFC 6750 §3).
        public static func bearer(realm: String?) -> Trigger { .detected(BearerDetector(realm: realm)) }
        /// Detects MobileFirst resources: Bearer challenges, `insufficient_scope`, `MFP-Conflict`.
        public static var mobileFirst: Trigger { .detected(MobileFirstDetector()) }

        /// Detector of its challenges, if there is one.
        public var detector: (any ChallengeDetector)? {
            if case .detected(let detector) = self { detector } else { nil }
        }
    }

    /// Name of the challenge in the configuration; for a MobileFirst upstream, the upstream's name.
    public let name: String
    /// Trigger of the login.
    public let trigger: Trigger
    /// True if the session is established before the first request, not after the first challenge.
    public let isAhead: Bool
    /// True if the session is established at start-up and then maintained (`login: at-start`).
    public let isKept: Bool
    /// Key of its session, with the default scope.
    public let key: SessionKey
    /// Names of the credentials for its answers, for `explain`.
    public let credentials: [String]
    /// Names of the challenges whose handlers the login calls; empty if the challenge has its own login.
    public let asks: [String]
    /// Scope that a request needs by its method and path, if the path determines the scope.
    public let scopeOfRoute: (@Sendable (_ method: String, _ path: String) -> Scope?)?
    /// Logout of its sessions at the server, if the configuration names one.
    public let logout: (any SessionLogout)?
    /// True if servers may authenticate the whole connection, as with NTLM and Negotiate.
    ///
    /// Requests of other sessions must then not use the connection.
    public let bindsConnections: Bool
    /// True if other nodes can use its sessions.
    ///
    /// False for sessions made for each request or connection, which cost no login.
    public let isShareable: Bool
    /// Codec that recreates the signers of its sessions after a restart.
    public let codec: SignerCodec
    /// True if `confirm` can determine if a session that met a challenge still works.
    public let confirmsSessions: Bool
    /// True if the login belongs to the upstream itself and not to a configured challenge (MobileFirst).
    ///
    /// Resources of the upstream name their scope, and execute no request without it.
    public let isOfUpstream: Bool
    /// True if the challenge is a login page in front of the whole server, which replaces other challenges.
    public let isLoginPage: Bool
    /// True if the fields of its sessions may depend on the body of a request.
    public var signsBodies = false
    /// True if `aws-chunked` bodies are decoded, because the signature covers the data.
    package var decodesChunks = false
    /// True if its sessions change the body of a request, which then has to be read whole first.
    package private(set) var changesBodies = false
    /// Settings that change the meaning of the login, as one text; empty without a configuration.
    package var terms = ""
    /// Reason why callers of this group get no session; such a login never runs. Nil otherwise.
    public private(set) var refusal: String?
    /// Security checks that the login answers together, if it belongs to the upstream.
    package private(set) var checks: [ConfiguredCheck] = []
    /// Required fields of each credential, by its name.
    package var requiredFields: [String: Set<String>] = [:]
    /// Address that asks for a login without the session and not with it (`prove-at`); nil if none is configured.
    package private(set) var proof: WebURL?
    /// Origins to which the login may send requests, in addition to the upstream's.
    package private(set) var origins: Set<Origin> = []
    private let makeLogin: @Sendable (LoginOccasion) -> any SessionLogin

    /// Creates an authenticator; `makeLogin` receives the cause of the login, with the scope.
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

    /// Creates an authenticator whose sessions may change bodies.
    package init(
        name: String, trigger: Trigger, isAhead: Bool, key: SessionKey, credentials: [String], isShareable: Bool,
        changesBodies: Bool, makeLogin: @escaping @Sendable (LoginOccasion) -> any SessionLogin
    ) {
        self.init(
            name: name, trigger: trigger, isAhead: isAhead, key: key, credentials: credentials,
            isShareable: isShareable, makeLogin: makeLogin)
        self.changesBodies = changesBodies
    }

    /// Returns true if a user who gives `name` means this login.
    public func isMeant(by name: String) -> Bool { self.name == name || asks.contains(name) }

    /// Scope requested if no response has named another.
    public var defaultScope: Scope { Scope(text: key.scope) }

    /// Returns the scope requested for a route if no response has named another.
    public func scope(method: String, path: String) -> Scope {
        guard let scope = scopeOfRoute?(method, path) else { return defaultScope }
        return defaultScope.union(scope)
    }

    /// Returns a copy whose logins fail with `reason`.
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

    /// Returns a copy whose login may also send requests to `origins`.
    func sending(to origins: Set<Origin>) -> Authenticator {
        var login = self
        login.origins.formUnion(origins)
        return login
    }

    /// Returns a copy whose sessions are proven at `address`.
    func verifying(at address: WebURL?) -> Authenticator {
        var login = self
        login.proof = address
        return login
    }

    /// Returns a copy whose login answers these checks together.
    func answering(_ checks: [ConfiguredCheck]) -> Authenticator {
        var login = self
        login.checks = checks
        return login
    }

    /// Returns the login for an occasion.
    public func login(_ occasion: LoginOccasion) -> any SessionLogin { makeLogin(occasion) }
}

/// Login that always fails.
private struct RefusingLogin: SessionLogin {
    let failure: LoginFailure

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session { throw failure }
}

/// Logins of one upstream, and the lookup of those that apply to a path.
///
/// Challenge handlers are dispatched by location pattern: the most specific pattern that covers the location hides all
/// others. Logins without a challenge (`inject`) and the upstream's own MobileFirst client are not dispatched: they
/// apply to all locations that they cover.
public struct Authenticators: Sendable {
    private var everywhere: [Authenticator] = []
    /// Logins without a challenge at patterns, with their position in `all`.
    private var covering = LocationTable<Covering>()
    private var hasCovering = false

    private struct Covering {
        let position: Int
        let login: Authenticator
    }

    private var dispatched = LocationTable<Authenticator>()
    /// All logins, in the order of the configuration, for `login`, `sessions` and readiness.
    public private(set) var all: [Authenticator] = []

    /// Creates an empty set.
    public init() {}

    /// Adds a login for the whole upstream.
    public mutating func add(_ login: Authenticator) {
        everywhere.append(login)
        all.append(login)
        if login.scopeOfRoute != nil { isUniform = false }
    }

    /// Adds a login for the locations of `pattern`.
    public mutating func add(_ login: Authenticator, at pattern: LocationPattern) {
        all.append(login)
        isUniform = false
        if login.trigger.detector == nil {
            covering.register(Covering(position: all.count, login: login), at: pattern)
            hasCovering = true
        } else {
            dispatched.register(login, at: pattern)
        }
    }

    /// True if the same logins and scopes apply to every path, so that no lookup per request is needed.
    public private(set) var isUniform = true

    /// True if there is no login.
    public var isEmpty: Bool { all.isEmpty }

    /// Returns the logins for `location`, in the order in which they examine responses.
    public func matching(_ location: Location) -> [Authenticator] {
        let dispatched = dispatched.match(location)?.handlers ?? []
        guard hasCovering else { return everywhere + dispatched }
        let covering = covering.all(covering: location).sorted { $0.position < $1.position }.map(\.login)
        return everywhere + covering + dispatched
    }

    /// Logins that apply to every path.
    public var unconditional: [Authenticator] { everywhere }
}
