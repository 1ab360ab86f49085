// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

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
