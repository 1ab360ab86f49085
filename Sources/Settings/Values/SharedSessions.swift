// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The section `sessions`: the session engine that the hosts of a fleet share, and how.
package struct SharedSessionSettings: Sendable, Equatable {
    /// Where the engine listens.
    package enum Store: Sendable, Equatable {
        /// At a Unix socket, by its absolute path.
        case socket(String)
        /// At a host and a port; `isSecure`: within TLS. An IPv6 address has no brackets.
        case host(String, port: UInt16, isSecure: Bool)
    }

    /// Where the engine listens.
    package var store: Store
    /// The number of its database.
    package var database: Int
    /// What the names of its keys begin with.
    package var prefix = "countersign"
    /// The name of the credential whose field `key` seals the sessions.
    package var key: String
    /// The name of the credential that the engine wants; `nil`: none.
    package var credential: String?
    /// What is asked of its certificate, and our own.
    package var tls = TLSSettings(pins: [])
    /// How long a host that logs in has the right to, before another one may; it is renewed meanwhile.
    package var lease = Duration.seconds(10)
    /// Within which time, by chance, hosts begin to win sessions on their own when the engine is away.
    package var spread = Duration.seconds(5)
}
