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

    /// Whether nothing binds a connection.
    var isCommon: Bool { keys.isEmpty }
}

/// The idle transfers of an upstream whose requests may share connections.
final class TransferPool {
    /// libcurl with these connections.
    let driver: CurlDriver
    /// Where transfers may share a connection of HTTP/2.
    let sharedStart: SharedStart?
    /// The express lines that rest.
    let rest: ExpressRest
    private var idle: [Transfer] = []
    /// Idle transfers beyond this many are let go; libcurl keeps the connections, not they.
    private static let mostIdle = 256

    init(driver: CurlDriver, sharedStart: SharedStart?, rest: ExpressRest) {
        self.rest = rest
        self.driver = driver
        self.sharedStart = sharedStart
    }

    /// An idle transfer, if there is one.
    func take() -> Transfer? { idle.popLast() }

    /// Takes a transfer back; one that still runs is ended, with its connection.
    func giveBack(_ transfer: Transfer) {
        sharedStart?.ended(transfer)
        transfer.driver.stop(transfer)
        transfer.reset()
        if idle.count < Self.mostIdle, !transfer.authenticatesConnection, transfer.driver === driver {
            idle.append(transfer)
        }
    }
}
