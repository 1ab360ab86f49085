// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPTypes
internal import SettingsReading

extension SettingsChecks {
    /// Reports secrets, session cookies and tokens that would go to another machine in plaintext.
    func checkPlaintext(_ reach: ChallengeReach) {
        for (position, upstream) in upstreams.enumerated() where !upstream.value.connections.allowsPlaintext {
            let challenges = reach.challenges(at: position).filter { !$0.value.credentialNames.isEmpty }
            let names = challenges.map { "\"\($0.value.name)\"" }
            let server = upstream.value.mobileFirst
            let advice = "\(direction(upstream.value)) in plaintext: use https://, or set `plaintext: allow`"
            if upstream.value.isPlaintext(upstream.value.url), !names.isEmpty || server != nil {
                let whose = names.isEmpty ? "logins" : "secrets of \(names.joined(separator: ", "))"
                reading.report("the \(whose) would go \(advice)", atPath: "\(upstream.path).url")
            } else if let server, upstream.value.isPlaintext(server.api) {
                reading.report("logins would go \(advice)", atPath: "\(upstream.path).mobilefirst.api")
            }
        }
        for (position, challenge) in challenges.enumerated() where !challenge.value.kind.loginAddresses.isEmpty {
            let refusing = reach.upstreams(of: position).filter { !$0.connections.allowsPlaintext }
            for (url, key) in challenge.value.kind.loginAddresses {
                guard let upstream = refusing.first(where: { $0.isPlaintext(url) }) else { continue }
                reading.report(
                    "secrets would go \(direction(upstream)) in plaintext: use https://, or set `plaintext: allow` at the "
                        + "upstream \(upstream.name)", atPath: "\(challenge.path).\(key)")
            }
        }
    }

    private func direction(_ upstream: UpstreamSettings) -> String {
        upstream.connections.proxy == nil ? "to another machine" : "through a proxy"
    }
}

extension UpstreamSettings {
    /// Returns whether requests to `url` cross a network in plaintext. Behind a proxy, loopback addresses are the proxy's.
    fileprivate func isPlaintext(_ url: WebURL) -> Bool {
        url.origin.scheme == .http && (connections.proxy != nil || !url.origin.isLoopback)
    }
}

extension SettingsChecks {
    /// Reports challenges that auth-request listeners cannot answer.
    ///
    /// The other proxy sends the requests itself, so connections and challenges of requests belong to it.
    func checkAuthRequests(_ reach: ChallengeReach) {
        let ordinary = Set(listeners.filter { !$0.value.answersAuthRequests }.flatMap(\.value.upstreamNames))
        for listener in listeners where listener.value.answersAuthRequests {
            let tokens = listener.value.callers.tokens
            if case .tcp = listener.value.address, listener.value.users == nil, tokens == nil {
                reading.report(
                    "this listener gives out sessions: over TCP, set `users` to the user that the other proxy runs as, or "
                        + "`callers` to a token of that proxy, or use a Unix socket",
                    atPath: "\(listener.path).auth-requests")
            }
            if tokens?.field == .authorization {
                reading.report(
                    "auth requests have the Authorization of the other proxy's own caller: choose another `field` for the "
                        + "token of the proxy itself", atPath: "\(listener.path).callers")
            }
            let names = Set(listener.value.upstreamNames)
            for (position, upstream) in upstreams.enumerated() where names.contains(upstream.value.name) {
                let reaching = reach.challenges(at: position)
                for challenge in reaching where challenge.value.kind.authenticatesConnections {
                    reading.report(
                        "\"\(challenge.value.name)\" has the scheme ntlm, which authenticates a connection, but the connection to "
                            + "\(upstream.value.name) is the other proxy's: remove ntlm, or use an ordinary listener",
                        atPath: "\(listener.path).auth-requests")
                }
                for challenge in reaching where challenge.value.kind.changesRequests {
                    reading.report(
                        "\"\(challenge.value.name)\" puts values into queries, paths or bodies, but the other proxy sends the "
                            + "requests to \(upstream.value.name), and only fields reach it: use `fields`, or an ordinary listener",
                        atPath: "\(listener.path).auth-requests")
                }
                if !reaching.isEmpty || upstream.value.mobileFirst != nil, !ordinary.contains(upstream.value.name) {
                    reading.report(
                        "no ordinary listener leads to \(upstream.value.name): a challenge that the other proxy receives cannot "
                            + "be handed back", atPath: "\(listener.path).auth-requests", severity: .warning)
                }
            }
        }
    }
}

extension ListenerSettings {
    /// Upstreams of the listener and its routes.
    fileprivate var upstreamNames: [String] { [upstream].compactMap(\.self) + routes.map(\.upstream) }
}
