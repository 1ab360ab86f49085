// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

/// Upstreams at which challenges may be met, found without comparing each challenge with each upstream.
struct ChallengeReach {
    private let upstreams: [Located<UpstreamSettings>]
    private let challenges: [Located<ChallengeSettings>]
    private let bases: LocationBases
    /// Positions of the upstreams, by position in `bases`.
    private var upstreamOfBase: [Int] = []
    /// Positions of the upstreams of each challenge, in order.
    private var upstreamsOf: [[Int]] = []
    /// Positions of the challenges of each upstream, in order.
    private var challengesOf: [[Int]]

    /// Finds the upstreams of `challenges`.
    init(of challenges: [Located<ChallengeSettings>], at upstreams: [Located<UpstreamSettings>]) {
        self.upstreams = upstreams
        self.challenges = challenges
        var addresses: [Location] = []
        for (position, upstream) in upstreams.enumerated() {
            for url in [upstream.value.url, upstream.value.mobileFirst?.api].compactMap(\.self) {
                addresses.append(Location(url))
                upstreamOfBase.append(position)
            }
        }
        bases = LocationBases(addresses)
        challengesOf = Array(repeating: [], count: upstreams.count)
        let names = Dictionary(grouping: upstreams.indices) { upstreams[$0].value.name }
        for (position, challenge) in challenges.enumerated() {
            let reached =
                switch challenge.value.location {
                case .upstream(let name): names[name] ?? []
                case .locations(let patterns):
                    Set(patterns.flatMap { bases.covered(by: $0) }.map { upstreamOfBase[$0] }).sorted()
                }
            upstreamsOf.append(reached)
            for upstream in reached { challengesOf[upstream].append(position) }
        }
    }

    /// Returns the upstreams of the challenge at a position of the list.
    func upstreams(of challenge: Int) -> [UpstreamSettings] { upstreamsOf[challenge].map { upstreams[$0].value } }

    /// Returns the challenges of the upstream at a position of the list.
    func challenges(at upstream: Int) -> [Located<ChallengeSettings>] { challengesOf[upstream].map { challenges[$0] } }

    /// Returns whether `pattern` covers part of an upstream or of its MobileFirst server.
    func covers(_ pattern: LocationPattern) -> Bool { bases.areCovered(by: pattern) }
}
