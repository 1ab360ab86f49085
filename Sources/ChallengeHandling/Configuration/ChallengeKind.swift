// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// A kind of challenge: what the configuration says of one, and all that the program asks about that.
///
/// A kind is one folder, and one line of `ChallengeKinds.all`. Settings, composition, `explain`, `doctor`, hand-over and shared sessions
/// read what stands here and in the `Authenticator` that it makes; nobody asks which kind it is.
package protocol ChallengeKind: Sendable, Equatable {
    /// The key of a challenge that names the kind.
    static var key: String { get }
    /// The further keys that belong to the kind.
    static var keys: [String] { get }
    /// The reason why the keys of any challenge (`credential`, `login`, …) mean nothing to this kind; `nil`: they do.
    static var refusalOfCommonKeys: String? { get }

    /// Reads the keys of a challenge; what is wrong is reported, and then there is none.
    static func read(_ fields: Fields, _ context: ChallengeContext) -> Self?
    /// The time at which the session is won, by the value of `login`.
    static func loginTime(_ login: Value) -> LoginTime?
    /// Reports what is wrong with a challenge as a whole.
    func check(_ challenge: ChallengeSettings, login: Value?)

    /// True if something is taken from a credential.
    var needsCredential: Bool { get }
    /// The fields that the credential has to have, for whoever has to add them.
    var neededFields: Set<String> { get }
    /// Those of them that no login of this kind does without, for `doctor`.
    var requiredFields: Set<String> { get }
    /// The written addresses that secrets go to, and their keys.
    var loginAddresses: [(url: WebURL, key: String)] { get }
    /// The realm that it answers alone; `nil`: any.
    var realm: String? { get }
    /// True if it authenticates a connection, which no other program can use (NTLM).
    var authenticatesConnections: Bool { get }
    /// True if this one answers what `other` would, wherever both stand.
    func rivals(_ other: Self) -> Bool
    /// Adds the settings that change what a login means: who is logged in, at which server, for what, and what its session adds to
    /// requests. Not: places, pages, failures, times, logouts.
    func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream)

    /// The authenticator of a challenge at an upstream; `nil` if there is nothing to be answered there.
    func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator?
    /// The answer to one security check of a server, which is part of a login together with others; `nil`: it logs in by itself.
    func securityCheck(of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite) -> ConfiguredCheck?
}

extension ChallengeKind {
    /// Most have common keys.
    package static var refusalOfCommonKeys: String? { nil }

    /// A word. The steps of a login stand there for one kind only.
    package static func loginTime(_ login: Value) -> LoginTime? {
        guard login.isScalar else {
            login.report("must be on-demand or at-start: the steps of a login belong to `gateway`")
            return nil
        }
        return login.choice(LoginTime.self)
    }

    /// Most are right if their parts are.
    package func check(_ challenge: ChallengeSettings, login: Value?) {}

    /// Most take all that they name.
    package var requiredFields: Set<String> { neededFields }

    /// Most send their secrets to the upstream alone.
    package var loginAddresses: [(url: WebURL, key: String)] { [] }

    /// Most know no realms.
    package var realm: String? { nil }

    /// Most speak for one request.
    package var authenticatesConnections: Bool { false }

    /// Most log in by themselves.
    package func securityCheck(
        of challenge: ChallengeSettings, at server: Origin, _ site: LoginSite
    ) -> ConfiguredCheck? { nil }

    /// True if both are the same kind with the same settings.
    package func isEqual(to other: any ChallengeKind) -> Bool { (other as? Self) == self }

    /// True if both are of one kind, of which the second could never be asked.
    package func isRival(of other: any ChallengeKind) -> Bool { (other as? Self).map(rivals) ?? false }
}

/// The part of the file that a kind may know while it is read.
package struct ChallengeContext {
    /// The place of the challenge.
    package var place: ChallengePlace?
    /// The value of `login`.
    package var login: Value?
    /// The upstreams, which fill in what a challenge leaves to its upstream.
    package var upstreams: [ProtectedUpstream]

    /// The upstream that it stands in front of, where it names one.
    var upstream: ProtectedUpstream? {
        guard case .upstream(let name)? = place else { return nil }
        return upstreams.first { $0.name == name }
    }
}

/// An upstream, as far as logins need to know it.
package struct ProtectedUpstream: Sendable, Equatable {
    /// Its name in the configuration.
    package var name: String
    /// Its origin, and the path that a request's path is appended to.
    package var url: WebURL
    /// Its MobileFirst 8.0 server, where one protects its resources.
    package var mobileFirst: MobileFirstConfiguration?

    /// An upstream.
    package init(name: String, url: WebURL, mobileFirst: MobileFirstConfiguration? = nil) {
        self.name = name
        self.url = url
        self.mobileFirst = mobileFirst
    }
}
