// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

extension SettingsChecks {
    /// Reports what an authority cannot do for the proxy that asks it, which sends the requests itself.
    func checkAuthorities() {
        let ordinary = Set(listeners.filter { !$0.value.isAuthority }.flatMap(\.value.upstreamNames))
        for listener in listeners where listener.value.isAuthority {
            if case .tcp = listener.value.address, listener.value.users == nil {
                reading.report(
                    "an authority hands out sessions: over TCP it needs `users` with the user that the other proxy runs as, or "
                        + "give it a Unix socket", atPath: "\(listener.path).authority")
            }
            for upstream in upstreams where listener.value.upstreamNames.contains(upstream.value.name) {
                let reaching = challenges.filter { $0.reached(of: [upstream]).count == 1 }
                for challenge in reaching where challenge.value.kind.authenticatesConnections {
                    reading.report(
                        "\"\(challenge.value.name)\" has the scheme ntlm, which authenticates a connection: that to "
                            + "\(upstream.value.name) is the other proxy's. Take ntlm out, or lead there by an ordinary "
                            + "listener", atPath: "\(listener.path).authority")
                }
                if !reaching.isEmpty || upstream.value.mobileFirst != nil, !ordinary.contains(upstream.value.name) {
                    reading.report(
                        "no ordinary listener leads to \(upstream.value.name): a challenge that the other proxy meets cannot "
                            + "be handed back", atPath: "\(listener.path).authority", severity: .warning)
                }
            }
        }
    }
}

extension ListenerSettings {
    /// Wherever it leads.
    fileprivate var upstreamNames: [String] { [upstream].compactMap(\.self) + routes.map(\.upstream) }
}
