// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
internal import ChallengeHandling
internal import Redis

/// The address of the session store, and how it is used.
package struct RedisStorePlan: Sendable, Equatable {
    /// A listening address.
    package enum Endpoint: Sendable, Equatable {
        /// A Unix socket, by its path.
        case socket(String)
        /// A host and port, with or without TLS.
        case host(String, port: UInt16, isSecure: Bool)
    }

    /// Listening address of the session store.
    package var endpoint: Endpoint
    /// Number of the database.
    package var database = 0
    /// Prefix of all keys and channels, in braces, so that a cluster keeps them together.
    package var prefix = "countersign"
    /// Authorities, certificates and pins of TLS; the other settings are not used.
    package var connections = ConnectionSettings()
    /// Name of the credential: `password`, and `username` if there is one.
    package var credential: String?
    /// Time for a connection, TLS included.
    package var connectTimeout = Duration.seconds(5)
    /// Time for a reply. A late one ends the connection, since later ones would not come either.
    package var replyTimeout = Duration.seconds(2)
    /// First pause before a reconnection; it doubles with each failure, and varies randomly by half.
    package var firstPause = Duration.milliseconds(100)
    /// Longest pause before a reconnection, without the random part.
    package var longestPause = Duration.seconds(5)
    /// Interval of the pings on an idle connection.
    package var keepAlive = Duration.seconds(15)

    /// A plan for the session store at `endpoint`.
    package init(endpoint: Endpoint) { self.endpoint = endpoint }

    /// Returns the name of a key or channel.
    func name(_ kind: StaticString, _ rest: String = "") -> String {
        rest.isEmpty ? "{\(prefix)}:\(kind)" : "{\(prefix)}:\(kind):\(rest)"
    }

    /// Returns the channel of a session's events.
    func eventChannel(of name: String) -> String { self.name("news", name) }
    /// Channel of changes of shared latches and used codes.
    var attemptChannel: String { name("latch-news") }

    /// Origin that libcurl connects to; over a Unix socket its host means nothing.
    var origin: Origin {
        switch endpoint {
        case .socket: Origin(scheme: .http, host: "localhost", port: 6379)
        case .host(let host, let port, let isSecure): Origin(scheme: isSecure ? .https : .http, host: host, port: port)
        }
    }
}

/// The reason why the session store is unreachable, in words that name no secret.
///
/// An error text of the store may repeat the unknown command, which may include a password: only its code is used.
struct RedisStoreError: Error, Equatable {
    /// The reason and the remedy, without a full stop.
    let words: String
    /// True if an early reconnection is of no use.
    let isLasting: Bool

    /// The meaning of an error code of the store.
    init(code: String) {
        switch code {
        case "NOAUTH", "DENIED":
            self.init("it wants a credential (\(code)): name one by `sessions.credential`", lasting: true)
        case "WRONGPASS":
            self.init(
                "it refuses the credential (\(code)): correct the one that `sessions.credential` names", lasting: true)
        case "NOPERM":
            self.init(
                "its user may not do what is needed (\(code)): allow it the keys and channels that begin with the prefix in "
                    + "braces, scripts, and the database of `sessions.store`", lasting: true)
        case "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN":
            self.init(
                "it is part of a cluster and does not have the keys (\(code)): name the node that does, or a session store "
                    + "without a cluster", lasting: true)
        case "LOADING": self.init("it has not loaded its data yet (\(code))", lasting: false)
        case "READONLY", "MASTERDOWN", "NOREPLICAS":
            self.init("it accepts no changes (\(code)): `sessions.store` must name the primary", lasting: false)
        case "OOM": self.init("it has no memory left (\(code)): raise its `maxmemory`", lasting: false)
        case "MISCONF": self.init("it cannot write its data to disk and accepts no changes (\(code))", lasting: false)
        case "BUSY": self.init("a script keeps it busy (\(code))", lasting: false)
        default:
            self.init(
                "it refuses a request\(code.isEmpty ? "" : " (\(code))"); its own log may say why", lasting: false)
        }
    }

    /// A connection that was not made.
    init(_ failure: TransferFailure) {
        self.init(FailureMeaning(failure).words)
    }

    /// A reason in these words.
    init(_ words: String, lasting: Bool = false) {
        self.words = words
        isLasting = lasting
    }
}
