// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// A kind of challenge: the keys that configure it, and everything that the program needs to know of it.
///
/// A kind is one folder and one entry of `ChallengeKinds.all`. Settings, composition, `explain`, `doctor`, hand-over and shared
/// sessions use only this protocol and the `Authenticator` that it makes; no code depends on a particular kind.
package protocol ChallengeKind: Sendable, Equatable {
    /// Keys of a challenge that belong to the kind. The first one names the kind.
    static var keys: [any SchemaKey] { get }
    /// Reason why the common keys (`credential`, `login`, …) mean nothing to this kind; nil if they apply.
    static var refusalOfCommonKeys: String? { get }

    /// Reads the keys of a challenge. Reports problems and returns nil if there are any.
    static func read(_ fields: Fields, _ context: ChallengeContext) -> Self?
    /// Returns the time at which the session is established, from the value of `login`.
    static func loginTime(_ login: Value) -> LoginTime?
    /// Reports problems of a challenge as a whole.
    func check(_ challenge: ChallengeSettings, login: Value)

    /// True if the challenge needs a field of a credential.
    var needsCredential: Bool { get }
    /// Fields that the credential may need, for messages about missing fields.
    var neededFields: Set<String> { get }
    /// Fields that every login of this kind needs, for `doctor`.
    var requiredFields: Set<String> { get }
    /// Configured addresses that secrets are sent to, and their keys.
    var loginAddresses: [(url: WebURL, key: String)] { get }
    /// TLS of the connections to the login's own servers, and its key; nil: as to the upstream, without its certificate.
    var loginTLS: (settings: TLSSettings, key: String)? { get }
    /// The only realm that is answered; nil: any.
    var realm: String? { get }
    /// True if a login authenticates a connection, which no other program can use (NTLM).
    var authenticatesConnections: Bool { get }
    /// True if a session changes requests in other ways than by fields, which no other program can do for it.
    var changesRequests: Bool { get }
    /// `User-Agent` that its settings send anyway, and that so is the whole login's; nil if there is none.
    var userAgent: String? { get }
    /// Returns whether this answers the same challenges as `other` at one location.
    func conflicts(with other: Self) -> Bool
    /// Text that is equal for any two that conflict, so that not all pairs need to be compared.
    var conflictGroup: String { get }
    /// Adds the settings that change the meaning of a login.
    ///
    /// These are the account, the server, the scope, and the fields that the session adds to requests. Locations,
    /// pages, failures, times and logouts are not included.
    func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream)

    /// Returns the authenticator of a challenge at an upstream; nil if there is nothing to answer there.
    func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator?
    /// Returns the answer to one security check of a server, as part of a joint login; nil if the challenge logs in by itself.
    func securityCheck(of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite) -> ConfiguredCheck?
}

extension ChallengeKind {
    /// Key of a challenge that names the kind.
    package static var key: String { keys.first?.name ?? "" }

    /// Nil: the common keys apply.
    package static var refusalOfCommonKeys: String? { nil }

    /// Returns one of the two keywords. Only gateways have login steps.
    package static func loginTime(_ login: Value) -> LoginTime? {
        guard login.isScalar else {
            login.report("must be on-demand or at-start: only a challenge with `gateway` has login steps")
            return nil
        }
        return login.choice(LoginTime.self)
    }

    /// Reports nothing.
    package func check(_ challenge: ChallengeSettings, login: Value) {}

    /// All needed fields.
    package var requiredFields: Set<String> { neededFields }

    /// Empty by default: secrets are sent to the upstream only.
    package var loginAddresses: [(url: WebURL, key: String)] { [] }

    /// Nil: as to the upstream.
    package var loginTLS: (settings: TLSSettings, key: String)? { nil }

    /// Nil: any realm.
    package var realm: String? { nil }

    /// Empty: each may conflict with any other.
    package var conflictGroup: String { "" }

    /// False: each request is authenticated.
    package var authenticatesConnections: Bool { false }

    /// False: sessions add fields.
    package var changesRequests: Bool { false }

    /// Nil: the daemon's own.
    package var userAgent: String? { nil }

    /// Returns nil: the challenge logs in by itself.
    package func securityCheck(
        of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite
    ) -> ConfiguredCheck? { nil }

    /// Returns whether both are of one kind with equal settings.
    package func isEqual(to other: any ChallengeKind) -> Bool { (other as? Self) == self }

    /// Returns whether both are of one kind, and the second would never be used.
    package func isInConflict(with other: any ChallengeKind) -> Bool { (other as? Self).map(conflicts(with:)) ?? false }
}

/// List of all kinds of challenges.
package enum ChallengeKinds {
    /// Kinds, in the order in which messages name them.
    package static let all: [any ChallengeKind.Type] = [
        SecurityCheckSettings.self,
        GatewaySettings.self,
        SchemeSettings.self,
        InjectionSettings.self,
        SignSettings.self,
        OwnHandlerSettings.self,
    ]
}

/// Parts of the file that a kind may use while it is read.
package struct ChallengeContext {
    /// Location of the challenge.
    package var location: ChallengeLocation?
    /// Value of `login`.
    package var login: Value?
    /// Upstreams by name, which supply values that a challenge leaves out.
    package var upstreams: [String: ProtectedUpstream]

    /// Upstream of the challenge, if it names one.
    var upstream: ProtectedUpstream? {
        guard case .upstream(let name)? = location else { return nil }
        return upstreams[name]
    }
}

/// The settings of an upstream that logins need.
package struct ProtectedUpstream: Sendable, Equatable {
    /// Name in the configuration.
    package var name: String
    /// Origin, and the path that a request's path is appended to.
    package var url: WebURL
    /// MobileFirst 8.0 server of the upstream, if one protects its resources.
    package var mobileFirst: MobileFirstConfiguration?

    /// Creates an upstream.
    package init(name: String, url: WebURL, mobileFirst: MobileFirstConfiguration? = nil) {
        self.name = name
        self.url = url
        self.mobileFirst = mobileFirst
    }
}
