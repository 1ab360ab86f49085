// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// The sessions that a server may bind a request's connection to, each in one generation.
///
/// Some servers authenticate a connection by its first request (NTLM, and Negotiate if configured so), and take later
/// requests for that user's, whatever they carry. So the connections of a group carry requests with these sessions
/// only, and end with the first of the sessions.
struct ConnectionGroup: Hashable {
    /// The sessions, at least one.
    private let sessions: [(key: SessionKey, generation: UInt64)]

    /// Creates the group of `sessions`; `nil` without any.
    init?(_ sessions: [(key: SessionKey, generation: UInt64)]) {
        guard !sessions.isEmpty else { return nil }
        self.sessions = sessions
    }

    /// Returns true if one of the sessions has ended: dropped, replaced or expired. `now` in milliseconds since 1970.
    func hasEnded(by gate: SharedAttemptGate, now: Int64) -> Bool {
        sessions.contains { session in
            gate.read {
                $0.sessions.isOutdated(session.key, generation: session.generation)
                    || $0.sessions.session(of: session.key)?.isExpired(at: now) == true
            }
        }
    }

    // Generations are unique in the process, so that the texts of the keys are not compared for each request.

    static func == (one: ConnectionGroup, other: ConnectionGroup) -> Bool {
        one.sessions.elementsEqual(other.sessions) { $0.generation == $1.generation }
    }

    func hash(into hasher: inout Hasher) {
        for session in sessions { hasher.combine(session.generation) }
    }
}

/// The connections that a request may use.
enum ConnectionUse: Equatable {
    /// Those that no server binds to a user, because no request has carried anything for that.
    case common
    /// Those of the request's own sessions.
    case bound(ConnectionGroup)
    /// A new one, which no other request uses.
    case single
    /// One on which the caller authenticates itself.
    case own
}

extension ConnectionUse {
    /// Chooses the connections for `request` with the fields of `sessions`.
    init(of request: ExchangeRequest, carrying sessions: SessionFields, at route: RouteSessions) {
        let sendsOwn =
            request.ownAuthorization != .none && (request.keepsCredentials || !sessions.replacesAuthorization)
        if sendsOwn, request.ownAuthorization == .connection {
            self = .own
            return
        }
        guard route.bindsConnections else {
            self = .common
            return
        }
        // A server that binds connections may bind them to any credential. Without the credential of one session, those
        // of others may still be sent.
        if sendsOwn || request.keepsCredentials || request.omitsConnectionCredential {
            self = .single
        } else {
            self = sessions.group.map { .bound($0) } ?? .common
        }
    }
}
