// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A challenge of the configuration: its kind, its place, its credential.
package struct ChallengeSettings: Sendable {
    /// Its name in the configuration.
    package var name: String
    /// The places at which it stands ready.
    package var place: ChallengePlace
    /// The credential's name; `nil` only where nothing of one is needed.
    package var credential: String?
    /// By which credential whom, in place of `credential`; `nil`: all callers by the same.
    package var credentialsByUser: CredentialsByUser?
    /// The kind, with its settings.
    package var kind: any ChallengeKind
    /// The time at which its session is won.
    package var login: LoginTime
    /// After how long a latch opens by itself; `nil` is never.
    package var retryRejected: Duration?
    /// Path and query, at the upstream's origin, that every accepted user may GET (`prove-at`): logins are proven there.
    package var proofPath: String?

    /// A challenge.
    package init(
        name: String, place: ChallengePlace, credential: String? = nil, credentialsByUser: CredentialsByUser? = nil,
        kind: any ChallengeKind, login: LoginTime = .onDemand, retryRejected: Duration? = nil, proofPath: String? = nil
    ) {
        self.name = name
        self.place = place
        self.credential = credential
        self.credentialsByUser = credentialsByUser
        self.kind = kind
        self.login = login
        self.retryRejected = retryRejected
        self.proofPath = proofPath
    }
}

extension ChallengeSettings: Equatable {
    /// True if both say the same.
    package static func == (left: ChallengeSettings, right: ChallengeSettings) -> Bool {
        left.name == right.name && left.place == right.place && left.credential == right.credential
            && left.credentialsByUser == right.credentialsByUser && left.kind.isEqual(to: right.kind)
            && left.login == right.login && left.retryRejected == right.retryRejected
            && left.proofPath == right.proofPath
    }
}

extension ChallengeSettings {
    /// The names of all credentials that it may use, each once, in the order of the file.
    package var credentialNames: [String] {
        let named = credentialsByUser.map { $0.named.map(\.credential) + [$0.others].compactMap(\.self) } ?? []
        var seen: Set<String> = []
        return ([credential].compactMap(\.self) + named).filter { seen.insert($0).inserted }
    }

    /// True if there is no credential of its for the callers that these settings are for.
    package var isForNobody: Bool { credential == CredentialsByUser.nobody }

    /// The reason that callers are told for whom there is none.
    package var refusal: String {
        "The challenge \(name) has its credentials by user, and none for the user of this caller. Name the user under "
            + "`by-user`, or \"*\" for all others."
    }

    /// The address that every accepted user may GET at `upstream` (`prove-at`); `nil` if none is configured.
    func proofAddress(at upstream: ProtectedUpstream) -> WebURL? {
        proofPath.flatMap { upstream.url.resolving($0) }
    }

    /// The terms of this challenge at `upstream`. Without the credential where the caller chooses it: each session's key names that.
    package func terms(at upstream: ProtectedUpstream) -> LoginTerms {
        var terms = LoginTerms()
        terms.add("kind", type(of: kind).key)
        if credentialsByUser == nil { terms.add("credential", credential) }
        kind.add(to: &terms, at: upstream)
        return terms
    }
}

/// The places at which a challenge stands ready.
package enum ChallengePlace: Sendable, Hashable {
    /// At these patterns; at least one.
    case locations([LocationPattern])
    /// At everything of the upstream of that name.
    case upstream(String)
}

/// The time at which a session is won.
package enum LoginTime: String, Sendable, CaseIterable {
    /// Before the first request, and then kept.
    case atStart = "at-start"
    /// At the first challenge.
    case onDemand = "on-demand"
}

/// An address written absolute, or relative to the upstream or to the page it stands on.
package enum AddressReference: Sendable, Hashable {
    /// With scheme and host.
    case absolute(WebURL)
    /// Without one: from its slash on, or for a gateway's form relative to the page (RFC 3986 §5).
    case path(String)

    /// As it is written.
    var text: String {
        switch self {
        case .absolute(let url): "\(url)"
        case .path(let path): path
        }
    }

    /// The address at `base`.
    func resolved(at base: WebURL) -> WebURL? {
        switch self {
        case .absolute(let url): url
        case .path(let path): base.resolving(path)
        }
    }

    /// The origin, where it is written.
    var origin: Origin? {
        if case .absolute(let url) = self { url.origin } else { nil }
    }
}
