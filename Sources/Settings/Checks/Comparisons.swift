// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

extension ChallengeSettings {
    /// Whether this one answers what `other` would, wherever both stand.
    func rivals(_ other: ChallengeSettings) -> Bool {
        switch (kind, other.kind) {
        case (.gateway(let mine), .gateway(let theirs)):
            mine.preset == theirs.preset && mine.detect == theirs.detect
        case (.inject(let mine), .inject(let theirs)):
            mine.contains { field in theirs.contains { $0.name == field.name } }
        case (.scheme(let mine), .scheme(let theirs)):
            mine.realm == theirs.realm && mine.schemes.contains(where: theirs.schemes.contains)
        case (.securityCheck(let mine), .securityCheck(let theirs)):
            mine.check == theirs.check
        default:
            false
        }
    }

    /// The written addresses that secrets go to, and their keys.
    var loginAddresses: [(url: WebURL, key: String)] {
        switch kind {
        case .gateway(let gateway):
            gateway.login.compactMap { step in
                guard case .address(.absolute(let url))? = step.target else { return nil }
                return (url, "login")
            }
        case .inject, .own:
            []
        case .scheme(let scheme):
            (scheme.token?.url.map { [($0, "token.url")] } ?? [])
                + (scheme.token?.issuers.map { ($0.url, "token.issuers") } ?? [])
        case .securityCheck(let check):
            if case .absolute(let url)? = check.answerURL { [(url, "answer-url")] } else { [] }
        }
    }
}

extension Placed<ChallengeSettings> {
    /// Where the challenge stands, one place at a time, and the way to each.
    var places: [(place: ChallengePlace, path: String)] {
        switch value.place {
        case .locations(let patterns):
            patterns.enumerated().map { (.locations([$1]), patterns.count == 1 ? "\(path).at" : "\(path).at[\($0)]") }
        case .upstream:
            [(value.place, "\(path).upstream")]
        }
    }

    /// The upstreams at which it could meet something.
    func reached(of upstreams: [Placed<UpstreamSettings>]) -> [UpstreamSettings] {
        switch value.place {
        case .locations(let patterns):
            upstreams.filter { upstream in patterns.contains { $0.reaches(upstream) } }.map(\.value)
        case .upstream(let name):
            upstreams.map(\.value).filter { $0.name == name }
        }
    }
}

extension LocationPattern {
    /// Whether it covers anything of that upstream, or of its MobileFirst server.
    func reaches(_ upstream: Placed<UpstreamSettings>) -> Bool {
        coversSomething(below: Location(upstream.value.url))
            || upstream.value.mobileFirst.map { coversSomething(below: Location($0.api)) } == true
    }

    /// The same pattern as `https://` would read it, where it reads port 80.
    var withTLS: LocationPattern? {
        try? LocationPattern("https://\(text)")
    }
}
