// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

extension SettingsChecks {
    /// Reports where a secret would go to another machine in the clear. What a login wins is one as well.
    func checkPlaintext() {
        for upstream in upstreams where upstream.value.plaintext == .refuse {
            let challenges = challenges.filter {
                $0.reached(of: [upstream]).count == 1 && !$0.value.credentialNames.isEmpty
            }
            let names = challenges.map { "\"\($0.value.name)\"" }
            let server = upstream.value.mobileFirst
            let advice = "\(way(upstream.value)) in the clear: use https://, or say `plaintext: allow`"
            if upstream.value.isPlaintext(upstream.value.url), !names.isEmpty || server != nil {
                let whose = names.isEmpty ? "logins" : "secrets of \(names.joined(separator: ", "))"
                reading.report("the \(whose) would go \(advice)", atPath: "\(upstream.path).url")
            } else if let server, upstream.value.isPlaintext(server.api) {
                reading.report("logins would go \(advice)", atPath: "\(upstream.path).mobilefirst.api")
            }
        }
        for challenge in challenges {
            let refusing = challenge.reached(of: upstreams).filter { $0.plaintext == .refuse }
            for (url, key) in challenge.value.kind.loginAddresses {
                guard let upstream = refusing.first(where: { $0.isPlaintext(url) }) else { continue }
                reading.report(
                    "secrets would go \(way(upstream)) in the clear: use https://, or say `plaintext: allow` at the "
                        + "upstream \(upstream.name)", atPath: "\(challenge.path).\(key)")
            }
        }
    }

    private func way(_ upstream: UpstreamSettings) -> String {
        upstream.proxy == nil ? "to another machine" : "through a proxy"
    }
}

extension UpstreamSettings {
    /// Whether what goes to `url` by the way of this upstream crosses a network in the clear. Behind a proxy the loopback
    /// addresses are the proxy's.
    fileprivate func isPlaintext(_ url: WebURL) -> Bool {
        url.origin.scheme == .http && (proxy != nil || !url.origin.isLoopback)
    }
}
