// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// Which session engine there is, and how it is reached.
package struct RedisEnginePlan: Sendable {
    /// Where it listens.
    package enum Place: Sendable, Equatable {
        /// At a Unix socket of this machine, by its path.
        case socket(String)
        /// At a host and a port, within TLS or not.
        case host(String, port: UInt16, isSecure: Bool)
    }

    /// Where it listens.
    package var place: Place
    /// The number of the database.
    package var database = 0
    /// What the names of all its keys and channels begin with, in braces: so a cluster keeps them together.
    package var prefix = "countersign"
    /// The authorities, certificates and pins of TLS; the rest of it means nothing here.
    package var connections = ConnectionSettings()
    /// The name of the credential that it wants, by the fields `username`, which may be missing, and `password`.
    package var credential: String?
    /// How long a connection may take, TLS included.
    package var connectTime = Duration.seconds(5)
    /// How long an answer may take. One that does not come in time ends the connection, as those behind it will not come either.
    package var patience = Duration.seconds(2)
    /// How long the first pause is before another connection is tried; twice that with each that fails, and half as much more or less
    /// by chance.
    package var firstPause = Duration.milliseconds(100)
    /// How long a pause is at most, before chance has its part.
    package var longestPause = Duration.seconds(5)
    /// How often it is asked whether it is there while nothing else happens.
    package var keepAlive = Duration.seconds(15)

    /// The engine at `place`.
    package init(place: Place) { self.place = place }

    /// A key or channel of the engine's.
    func name(_ kind: StaticString, _ rest: String = "") -> String {
        rest.isEmpty ? "{\(prefix)}:\(kind)" : "{\(prefix)}:\(kind):\(rest)"
    }

    /// What libcurl connects to. Over a Unix socket the host's name means nothing.
    var origin: Origin {
        switch place {
        case .socket: Origin(scheme: .http, host: "localhost", port: 6379)
        case .host(let host, let port, let isSecure): Origin(scheme: isSecure ? .https : .http, host: host, port: port)
        }
    }
}
