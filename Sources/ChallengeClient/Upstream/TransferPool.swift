// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop

/// Who may share connections. To a server that takes a connection for its first request's user (NTLM; Negotiate, where it is
/// set up so) a request of another session, or one ahead of its session, would be that user's.
struct ConnectionGroup: Hashable {
    /// What sessions connections may be bound to, by challenge and credential; mostly none.
    private let keys: [SessionKey]

    init(_ keys: some Sequence<SessionKey>) {
        self.keys = keys.map { SessionKey(origin: $0.origin, challenge: $0.challenge, credential: $0.credential) }
    }

    /// True if nothing binds a connection.
    var isCommon: Bool { keys.isEmpty }
}

/// The idle streams of an upstream whose requests may share connections.
final class TransferPool {
    /// libcurl with these connections.
    let driver: CurlDriver
    /// The start of streams that may share a connection of HTTP/2.
    let sharedStart: SharedStart?
    /// The connections of HTTP/1.1 that rest.
    let rest: RestingStreams
    private var idle: [CurlStream] = []
    /// Idle streams of libcurl's beyond this many are let go; libcurl keeps the connections, not they.
    private static let mostIdle = 256

    init(driver: CurlDriver, sharedStart: SharedStart?, rest: RestingStreams) {
        self.rest = rest
        self.driver = driver
        self.sharedStart = sharedStart
    }

    /// An idle stream, if there is one.
    func take() -> CurlStream? { idle.popLast() }

    /// Takes a stream back that has ended.
    func put(_ stream: CurlStream) {
        if idle.count < Self.mostIdle { idle.append(stream) }
    }
}
