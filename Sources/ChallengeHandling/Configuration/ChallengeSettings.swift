// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// Settings of a challenge: its kind, location and credential.
package struct ChallengeSettings: Sendable {
    /// Name in the configuration.
    package var name: String
    /// Location at which the challenge is answered.
    package var location: ChallengeLocation
    /// Name of the credential; nil if none is needed.
    package var credential: String?
    /// Credentials by caller (`by-user`, `by-caller`); nil if every caller uses `credential`.
    package var credentialsByCaller: CredentialsByCaller?
    /// Kind, with its settings.
    package var kind: any ChallengeKind
    /// Time at which the session is established.
    package var login: LoginTime
    /// Time after which a latch opens by itself; nil: never.
    package var retryRejected: Duration?
    /// `User-Agent` of the login's own requests; nil for that of the daemon.
    package var userAgent: String?
    /// Path and query of `prove-at`, at the upstream's origin: every accepted user may GET it, and logins are verified there.
    package var proofPath: String?

    /// Creates a challenge.
    package init(
        name: String, location: ChallengeLocation, credential: String? = nil,
        credentialsByCaller: CredentialsByCaller? = nil,
        kind: any ChallengeKind, login: LoginTime = .onDemand, retryRejected: Duration? = nil, proofPath: String? = nil
    ) {
        self.name = name
        self.location = location
        self.credential = credential
        self.credentialsByCaller = credentialsByCaller
        self.kind = kind
        self.login = login
        self.retryRejected = retryRejected
        self.proofPath = proofPath
    }
}

extension ChallengeSettings: Equatable {
    /// Returns whether all settings are equal.
    package static func == (left: ChallengeSettings, right: ChallengeSettings) -> Bool {
        left.name == right.name && left.location == right.location && left.credential == right.credential
            && left.credentialsByCaller == right.credentialsByCaller && left.kind.isEqual(to: right.kind)
            && left.login == right.login && left.retryRejected == right.retryRejected
            && left.proofPath == right.proofPath && left.userAgent == right.userAgent
    }
}

extension ChallengeSettings {
    /// Unique names of the credentials that the challenge may use, in file order.
    package var credentialNames: [String] {
        let named = credentialsByCaller.map { $0.named.map(\.credential) + [$0.others].compactMap(\.self) } ?? []
        var seen: Set<String> = []
        return ([credential].compactMap(\.self) + named).filter { seen.insert($0).inserted }
    }

    /// True if the callers that these settings are for have no credential.
    package var lacksCredential: Bool { credential == CredentialsByCaller.noCredential }

    /// Message to callers without a credential.
    package var refusal: String {
        "The challenge \(name) has credentials by caller, but none for this one. Add the caller under `by-user` or "
            + "`by-caller`, or \"*\" for all others."
    }

    /// Returns the address of `prove-at` at `upstream`; nil if none is configured.
    func proofAddress(at upstream: ProtectedUpstream) -> WebURL? {
        proofPath.flatMap { upstream.url.resolving($0) }
    }

    /// Returns the terms of this challenge at `upstream`.
    ///
    /// Per-user credentials are not included: the key of each session names its credential.
    package func terms(at upstream: ProtectedUpstream) -> LoginTerms {
        var terms = LoginTerms()
        terms.add("kind", type(of: kind).key)
        if credentialsByCaller == nil { terms.add("credential", credential) }
        terms.add("user-agent", userAgent)
        kind.add(to: &terms, at: upstream)
        return terms
    }
}

/// Location at which a challenge is answered.
package enum ChallengeLocation: Sendable, Hashable {
    /// At these patterns; at least one.
    case locations([LocationPattern])
    /// Everywhere at the upstream of that name.
    case upstream(String)
}

/// Time at which a session is established.
package enum LoginTime: String, Sendable, CaseIterable {
    /// Before the first request. The session is then kept.
    case atStart = "at-start"
    /// At the first challenge.
    case onDemand = "on-demand"
}

extension ChallengeSettings {
    /// Keys of all kinds of challenges.
    enum Keys {
        static let name = Key(
            required: "name", .name, "Name of the challenge in commands, logs and metrics.")
        static let locations = Key(
            "at", .list(of: .locationPattern), without: "", "Locations at which the challenge is answered.")
        static let upstream = Key(
            "upstream", .upstream, without: "",
            "Upstream at which the challenge is answered everywhere, instead of `at`.")
        static let credential = Key<CredentialChoice?>(
            "credential", .credentialChoice, without: "required if a field of it is used",
            "Credential that answers the challenge.")
        static let login = Key<LoginTime>(
            "login", .loginTimeOrSteps, default: .onDemand,
            "Time of the login: at the first challenge, or before the first request, after which the session is kept.")
        static let proof = Key(
            "prove-at", .originPath,
            "Path that every accepted user may GET without side effects; logins are verified there.")
        static let userAgent = Key(
            "user-agent", .fieldValue, without: "`countersign/VERSION`",
            "`User-Agent` of the login's own requests, and of callers' requests if the server binds the session to it.")
        static let retryRejected = Key<Duration?>(
            "retry-rejected", .retryRejected, default: nil,
            "Time after which the latch of a rejected credential opens.")
    }

    /// Common keys, without those of a kind.
    package static let commonKeys: [any SchemaKey] = [
        Keys.name, Keys.locations, Keys.upstream, Keys.credential, Keys.login, Keys.proof, Keys.retryRejected,
        Keys.userAgent,
    ]

    /// Returns the table of `challenges`, for a program with these kinds.
    package static func section(_ kinds: [any ChallengeKind.Type]) -> KeySection {
        KeySection("challenges", commonKeys + kinds.flatMap { $0.keys })
    }

    /// Reads `challenges`, each with its key path.
    ///
    /// `upstreams` supply values that a challenge leaves out, `kinds` are the kinds of the program.
    package static func read(
        _ value: Value, upstreams: [ProtectedUpstream], kinds: [any ChallengeKind.Type]
    ) -> [Located<ChallengeSettings>] {
        let section = section(kinds)
        let upstreams = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        return (value.list() ?? []).compactMap { element in
            element.fields(of: section).flatMap { read($0, upstreams, kinds) }
                .map { Located(path: element.path, value: $0) }
        }
    }

    private static func read(
        _ fields: Fields, _ upstreams: [String: ProtectedUpstream], _ kinds: [any ChallengeKind.Type]
    ) -> ChallengeSettings? {
        let name = fields[Keys.name]
        let location = location(fields)
        let type = kind(fields, among: kinds)
        let login = fields.written(Keys.login)
        let kind = type?.read(fields, ChallengeContext(location: location, login: login, upstreams: upstreams))
        if let why = type?.refusalOfCommonKeys {
            let written = [
                fields.written(Keys.credential), login, fields.written(Keys.proof), fields.written(Keys.retryRejected),
                fields.written(Keys.userAgent),
            ]
            for value in written { value?.report(why) }
            guard let name, let location, let kind else { return nil }
            return ChallengeSettings(name: name, location: location, kind: kind)
        }
        let credential = fields[Keys.credential]
        let loginTime = login.map { type?.loginTime($0) ?? .onDemand } ?? fields[Keys.login]
        let retryRejected = fields[Keys.retryRejected]
        let proofPath = fields[Keys.proof]
        let userAgent = fields[Keys.userAgent]
        guard let name, let location, let kind else { return nil }
        var settings = ChallengeSettings(
            name: name, location: location, credential: credential?.name, credentialsByCaller: credential?.byCaller,
            kind: kind,
            login: loginTime, retryRejected: retryRejected, proofPath: proofPath)
        settings.userAgent = userAgent
        kind.check(settings, login: login ?? fields.value)
        if kind.needsCredential, fields.written(Keys.credential) == nil { fields.reportMissing(Keys.credential) }
        return settings
    }

    private static func location(_ fields: Fields) -> ChallengeLocation? {
        let locations = fields.written(Keys.locations)
        if let locations, let upstream = fields.written(Keys.upstream) {
            upstream.report(
                "cannot be combined with `at` in line \(locations.keyMark.line): a challenge has only one of them")
            return nil
        }
        guard let locations else {
            if fields.written(Keys.upstream) == nil {
                fields.value.report("has no location: add `at` with location patterns, or `upstream`")
            }
            return fields[Keys.upstream].map(ChallengeLocation.upstream)
        }
        let count = locations.listOrOne().count
        let patterns = fields[Keys.locations] ?? []
        if count == 0 { locations.report("is empty: name at least one location") }
        return patterns.isEmpty || patterns.count < count ? nil : .locations(patterns)
    }

    /// Returns the one kind that the written keys name.
    private static func kind(_ fields: Fields, among kinds: [any ChallengeKind.Type]) -> (any ChallengeKind.Type)? {
        let named = kinds.filter { fields.has($0.key) }
        // The key of one kind may also belong to another kind (`inject` of a gateway).
        let written = named.filter { one in !named.contains { $0.key != one.key && $0.has(one.key) } }
        guard let kind = written.first, written.count == 1 else {
            fields.value.report(
                written.isEmpty
                    ? "has no kind: add one of \(list(kinds))"
                    : "has several kinds: \(list(written)); write one challenge for each")
            return nil
        }
        for other in kinds where other.key != kind.key {
            for key in other.keys.map(\.name) where !kind.has(key) {
                fields.written(named: key)?.report("belongs to `\(other.key)`, not to `\(kind.key)`")
            }
        }
        return kind
    }

    private static func list(_ kinds: [any ChallengeKind.Type]) -> String {
        kinds.map { "`\($0.key)`" }.joined(separator: ", ")
    }
}

extension ChallengeKind {
    /// Returns whether `key` belongs to the kind.
    fileprivate static func has(_ key: String) -> Bool { keys.contains { $0.name == key } }
}

extension ValueForm where Content == LoginTime {
    /// A keyword, or the steps of a login.
    fileprivate static let loginTimeOrSteps = {
        var form = ValueForm.choice.described(as: "`on-demand`, `at-start`, or steps")
        form.section = LoginStep.section
        return form
    }()
}

extension ValueForm where Content == String {
    /// The value of a field (RFC 9110 §5.5).
    fileprivate static let fieldValue = ValueForm("text", write: { .scalar($0, isPlain: false) }) { value in
        guard let text = value.text() else { return nil }
        guard !text.isEmpty, text.utf8.count <= 512, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
            !text.hasPrefix(" "), !text.hasSuffix(" ")
        else {
            value.report("must be the value of a field: 1 to 512 printable ASCII characters, no space at its ends")
            return nil
        }
        return text
    }
}

extension ValueForm where Content == Duration? {
    /// `never`, or a duration.
    fileprivate static let retryRejected = ValueForm(
        "`never` or duration", choices: ["never"],
        write: { .scalar($0.map(DurationText.text) ?? "never") },
        read: { $0.isKeyword("never") ? .some(nil) : $0.duration() })
}
