// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl

/// A server of HTTP/1.1 within TLS: `Tests/Scripts/tls-upstream`.
final class TLSUpstream {
    let port: UInt16
    private let helper: Helper

    /// `certificate`: one of `Certificates`; `clients`: it wants one of that authority; `version`: the latest that it speaks.
    init(
        certificate: String = "server.pem", key: String = "server.key", clients: String? = nil, version: String? = nil,
        host: String = "127.0.0.1"
    ) throws {
        var arguments = [Helper.script("tls-upstream"), Certificates.path(certificate), Certificates.path(key)]
        if let clients { arguments += ["--clients", Certificates.path(clients)] }
        if let version { arguments += ["--at-most", version] }
        helper = try Helper(arguments + ["--listen", host])
        port = try helper.port()
    }
}

extension ConnectionSettings {
    /// Trusts the authority of `Certificates`.
    static func trusting(
        _ authority: String = "ca.pem", _ change: (inout ConnectionSettings) -> Void = { _ in }
    ) -> ConnectionSettings {
        var settings = ConnectionSettings()
        settings.authorities = Certificates.blob(authority)
        change(&settings)
        return settings
    }
}

extension UpstreamPlan {
    /// An upstream named `bank` at `localhost`.
    static func secure(
        host: String = "localhost", port: UInt16, scheme: Origin.Scheme = .https, connections: ConnectionSettings,
        timeouts: Timeouts = Timeouts(), logins: [Authenticator] = []
    ) -> UpstreamPlan {
        var authenticators = Authenticators()
        for login in logins { authenticators.add(login) }
        return UpstreamPlan(
            name: "bank", base: WebURL(origin: Origin(scheme: scheme, host: host, port: port), path: "/"),
            connections: connections, timeouts: timeouts, logins: authenticators)
    }
}
