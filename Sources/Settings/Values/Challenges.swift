// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import HTTPTypes

/// What answers one kind of challenge, where, and with which credential.
package struct ChallengeSettings: Sendable, Equatable {
    /// Its name in the configuration.
    package var name: String
    /// Where it stands ready.
    package var place: ChallengePlace
    /// The credential's name; `nil` only where nothing of one is needed.
    package var credential: String?
    /// By which credential whom, in place of `credential`; `nil`: all callers by the same.
    package var credentialsByUser: CredentialsByUser?
    /// What it answers and how.
    package var kind: ChallengeKind
    /// When its session is won.
    package var login: LoginTime
    /// After how long a latch opens by itself; `nil` is never.
    package var retryRejected: Duration?
    /// Path and query, at the upstream's origin, that every accepted user may GET (`prove-at`): logins are proven there.
    package var proofPath: String?
}

/// The credentials of a challenge that asks who calls.
package struct CredentialsByUser: Sendable, Equatable {
    /// A user's own.
    package struct Entry: Sendable, Equatable {
        /// The user.
        package var user: UserReference
        /// The credential's name.
        package var credential: String
    }

    /// Those of certain users, in the order of the file.
    package var named: [Entry]
    /// That of all others; `nil`: they get no session.
    package var others: String?

    /// What stands for all others in the place of a user.
    package static let everybodyElse = "*"
    /// The credential of those who have none: no credential's name begins so.
    package static let nobody = "-"
}

extension ChallengeSettings {
    /// The names of all credentials that it may use, each once, in the order of the file.
    package var credentialNames: [String] {
        let named = credentialsByUser.map { $0.named.map(\.credential) + [$0.others].compactMap(\.self) } ?? []
        var seen: Set<String> = []
        return ([credential].compactMap(\.self) + named).filter { seen.insert($0).inserted }
    }
}

/// Where a challenge stands ready.
package enum ChallengePlace: Sendable, Hashable {
    /// At these patterns; at least one.
    case locations([LocationPattern])
    /// At everything of the upstream of that name.
    case upstream(String)
}

/// When a session is won.
package enum LoginTime: String, Sendable, CaseIterable {
    /// Before the first request, and then kept.
    case atStart = "at-start"
    /// When a challenge is met.
    case onDemand = "on-demand"
}

/// The kinds of challenges, told apart by the key that is theirs alone.
package enum ChallengeKind: Sendable, Equatable {
    /// `gateway:` a login in front of the upstream.
    case gateway(GatewaySettings)
    /// `inject:` fixed fields, no challenge needed.
    case inject([InjectedTemplate])
    /// `handler:` a handler that the program brings along, by its name there.
    case own(String)
    /// `scheme:` HTTP authentication and bearer tokens.
    case scheme(SchemeSettings)
    /// `security-check:` a server-side rule, by name.
    case securityCheck(SecurityCheckSettings)
}

/// The answer to a security check.
package struct SecurityCheckSettings: Sendable, Equatable {
    /// The check's name at the server.
    package var check: String
    /// The answer.
    package var answer: AnswerTemplate
    /// How many of the remaining attempts are never used.
    package var keepAttempts: Int
    /// Where the answer goes, only where the resource itself sends the challenges.
    package var answerURL: AddressReference?
    /// Whether the check is logged out of where its session is not needed any more; at MobileFirst servers.
    package var logsOut = false
}

/// A field of a request and its value.
package struct InjectedTemplate: Sendable, Hashable {
    /// The field's name.
    package var name: HTTPField.Name
    /// Its value.
    package var value: TextTemplate
}

/// An address written absolute, or relative to the upstream or to the page it stands on.
package enum AddressReference: Sendable, Hashable {
    /// With scheme and host.
    case absolute(WebURL)
    /// Without one: from its slash on, or for a gateway's form relative to the page (RFC 3986 §5).
    case path(String)
}

/// HTTP authentication (RFC 9110 §11) and bearer tokens (RFC 6750).
package struct SchemeSettings: Sendable, Equatable {
    /// The schemes.
    package enum Scheme: String, Sendable, CaseIterable {
        case basic, bearer, digest, negotiate, ntlm
    }

    /// In the order in which they are tried; at least one, each once.
    package var schemes: [Scheme]
    /// The realm; `nil` is any.
    package var realm: String?
    /// The service principal for Negotiate; `nil` is `HTTP@host`.
    package var servicePrincipal: String?
    /// Where the token comes from; there if and only if `bearer` is among the schemes.
    package var token: TokenSettings?
}
