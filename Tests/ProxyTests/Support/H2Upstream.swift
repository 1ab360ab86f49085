// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling

/// A server of HTTP/2 that does what a request's path says: `Tests/Scripts/h2-upstream`.
final class H2Upstream {
    let port: UInt16
    private let isTLS: Bool
    private let helper: Helper

    /// `streams`: how many it takes at once on a connection; `window`: of each request's body.
    init(tls: Bool = true, streams: Int = 100, window: Int = 65_535) throws {
        var arguments = [Helper.script("h2-upstream"), "--streams", "\(streams)", "--window", "\(window)"]
        if tls { arguments += ["--tls", Certificates.path("server.pem"), Certificates.path("server.key")] }
        helper = try Helper(arguments)
        port = try helper.port()
        isTLS = tls
    }

    /// Ends it.
    func end() { helper.end() }

    /// The plan of it, named `bank`.
    func plan(
        version: ConnectionSettings.Version = .auto, timeouts: UpstreamPlan.Timeouts = .init(),
        logins: [Authenticator] = []
    ) -> UpstreamPlan {
        var connections = ConnectionSettings()
        connections.version = version
        connections.authorities = Certificates.blob("ca.pem")
        return .secure(
            port: port, scheme: isTLS ? .https : .http, connections: connections, timeouts: timeouts, logins: logins)
    }
}
