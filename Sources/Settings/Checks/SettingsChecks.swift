// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

/// What no single value can know: names that stand twice, upstreams that nobody reaches, secrets in the clear.
struct SettingsChecks {
    let reading: Reading
    let listeners: [Placed<ListenerSettings>]
    let admin: [Placed<ListenAddress>]
    let upstreams: [Placed<UpstreamSettings>]
    let challenges: [Placed<ChallengeSettings>]
    let credentials: CredentialSettings
    let sessions: SharedSessionSettings?
    let limits: LimitSettings

    /// Reports all of it.
    func run() {
        checkAddresses()
        checkUsers()
        checkUpstreamsAreUsed()
        checkAuthorities()
        checkChallengeNames()
        checkRivals()
        checkReach()
        checkPlaintext()
        checkReplay()
        checkAsked()
    }

    private func checkAddresses() {
        let addresses = listeners.map { Placed(path: "\($0.path).address", value: $0.value.address) } + admin
        var seen: [ListenAddress: String] = [:]
        for address in addresses {
            // Port 0 is another port each time.
            if case .tcp(_, 0) = address.value { continue }
            if let first = seen[address.value] {
                reading.report("the address is taken already, by \(first)", atPath: address.path)
            } else {
                seen[address.value] = address.path
            }
        }
    }

    /// The kernel knows the user of a caller on this machine; who is not known is not let in.
    private func checkUsers() {
        for listener in listeners where !listener.value.address.isLocal {
            let message = "callers from other machines have no user here: none of them is let in by it"
            if listener.value.users != nil {
                reading.report(message, atPath: "\(listener.path).users", severity: .warning)
            }
            for (index, route) in listener.value.routes.enumerated() where route.users != nil {
                reading.report(message, atPath: "\(listener.path).routes[\(index)].users", severity: .warning)
            }
        }
    }

    private func checkUpstreamsAreUsed() {
        guard !listeners.isEmpty else { return }
        let used = Set(listeners.flatMap { [$0.value.upstream].compactMap(\.self) + $0.value.routes.map(\.upstream) })
        for upstream in upstreams where !used.contains(upstream.value.name) {
            reading.report("no listener and no route leads to this upstream", atPath: upstream.path, severity: .warning)
        }
    }

    private func checkChallengeNames() {
        var seen: [String: String] = [:]
        for challenge in challenges {
            if let first = seen.updateValue(challenge.path, forKey: challenge.value.name) {
                reading.report(
                    "\"\(challenge.value.name)\" is the name of \(first) already", atPath: "\(challenge.path).name")
            }
        }
    }

    /// Of two challenges of the same kind and realm at one place the second could never be asked.
    private func checkRivals() {
        for (index, challenge) in challenges.enumerated() {
            for earlier in challenges[..<index] where earlier.value.kind.isRival(of: challenge.value.kind) {
                for (place, path) in challenge.places where earlier.places.contains(where: { $0.place == place }) {
                    reading.report(
                        "\"\(earlier.value.name)\" answers the same challenge here already; the second is never asked",
                        atPath: path)
                }
            }
        }
    }

    private func checkReach() {
        for challenge in challenges {
            guard case .locations(let patterns) = challenge.value.place, !upstreams.isEmpty else { continue }
            for (pattern, place) in zip(patterns, challenge.places) where !upstreams.contains(where: pattern.reaches) {
                let advice =
                    upstreams.contains(where: { pattern.withTLS?.reaches($0) == true })
                    ? "; without a scheme and a port 80 is meant: write https:// before it" : ""
                reading.report("covers nothing at any upstream\(advice)", atPath: place.path, severity: .warning)
            }
        }
    }

    private func checkAsked() {
        let others = [sessions?.key, sessions?.credential].compactMap(\.self)
        for (name, fields) in credentials.asked
        where !fields.isEmpty && !others.contains(name)
            && !challenges.contains(where: { $0.value.credentialNames.contains(name) })
        {
            reading.report(
                "no challenge uses a credential of this name", atPath: "credentials.ask.\(name)", severity: .warning)
        }
    }

    /// One body alone may then take more than all together.
    private func checkReplay() {
        guard limits.replay > 0 else { return }
        for upstream in upstreams where upstream.value.replay.disk > limits.replay {
            guard upstream.value.replay.disk != ReplaySettings().disk else { continue }
            reading.report(
                "is more than `limits.replay`, which all bodies share: longer ones are not kept",
                atPath: "\(upstream.path).replay.disk", severity: .warning)
        }
    }
}
