// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

extension ChallengeSettings {
    /// `challenges:`, each with the way to it; `upstreams` fill in what a challenge leaves to its upstream. `kinds` are those that there are.
    package static func read(
        _ value: Value, upstreams: [ProtectedUpstream], kinds: [any ChallengeKind.Type]
    ) -> [Placed<ChallengeSettings>] {
        (value.list() ?? []).compactMap { element in
            element.fields().flatMap { read($0, upstreams, kinds) }.map { Placed(path: element.path, value: $0) }
        }
    }

    private static func read(
        _ fields: Fields, _ upstreams: [ProtectedUpstream], _ kinds: [any ChallengeKind.Type]
    ) -> ChallengeSettings? {
        let name = fields.required("name")?.name()
        let place = place(fields)
        let credentialValue = fields["credential"]
        let byUser = credentialValue.flatMap { $0.isMapping ? $0.credentialsByUser() : nil }
        let credential = credentialValue.flatMap { $0.isMapping ? nil : $0.name() }
        let retry = fields["retry-rejected"]
        let proof = fields["prove-at"]
        let proofPath = proof.flatMap { $0.originPath() }
        let login = fields["login"]
        let type = kind(fields, among: kinds)
        let loginTime = login.flatMap { type?.loginTime($0) }
        let kind = type?.read(fields, ChallengeContext(place: place, login: login, upstreams: upstreams))
        fields.finish()
        let retryRejected = retry?.isKeyword("never") == true ? nil : retry?.duration()
        guard let name, let place, let kind else { return nil }
        if let why = type?.refusalOfCommonKeys {
            for value in [credentialValue, retry, proof, login] { value?.report(why) }
        }
        let settings = ChallengeSettings(
            name: name, place: place, credential: credential, credentialsByUser: byUser, kind: kind,
            login: loginTime ?? .onDemand, retryRejected: retryRejected, proofPath: proofPath)
        kind.check(settings, login: login)
        if credentialValue == nil, kind.needsCredential { _ = fields.required("credential") }
        return settings
    }

    private static func place(_ fields: Fields) -> ChallengePlace? {
        let locations = fields["at"]
        let upstream = fields["upstream"]
        if let locations, let upstream {
            upstream.report("stands beside `at`, in line \(locations.keyMark.line): a challenge has one of them")
            return nil
        }
        if let upstream { return upstream.upstreamName().map(ChallengePlace.upstream) }
        guard let locations else {
            fields.value.report("has no place: `at` with location patterns, or `upstream`")
            return nil
        }
        let elements = locations.listOrOne()
        let patterns = elements.compactMap { $0.locationPattern() }
        if elements.isEmpty { locations.report("is empty: the challenge would stand nowhere") }
        return patterns.isEmpty || patterns.count < elements.count ? nil : .locations(patterns)
    }

    /// The kind that the keys name, which is one.
    private static func kind(_ fields: Fields, among kinds: [any ChallengeKind.Type]) -> (any ChallengeKind.Type)? {
        let named = kinds.filter { fields.has($0.key) }
        // What is a kind by itself may be a key of another (`inject` of a gateway).
        let written = named.filter { one in !named.contains { $0.keys.contains(one.key) } }
        guard let kind = written.first, written.count == 1 else {
            // Every key of every kind is known here, only too many or none.
            for kind in kinds { for key in [kind.key] + kind.keys { _ = fields[key] } }
            fields.value.report(
                written.isEmpty
                    ? "has no kind: one of \(list(kinds)) is missing"
                    : "has several kinds: \(list(written)); write one challenge for each")
            return nil
        }
        for other in kinds where other.key != kind.key {
            for key in other.keys where key != kind.key && !kind.keys.contains(key) {
                fields[key]?.report("belongs to `\(other.key)`, not to `\(kind.key)`")
            }
        }
        return kind
    }

    private static func list(_ kinds: [any ChallengeKind.Type]) -> String {
        kinds.map { "`\($0.key)`" }.joined(separator: ", ")
    }
}
