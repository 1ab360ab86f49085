// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import Synchronization

/// A challenge handler that a program brings along.
///
/// It runs on a thread of the daemon that serves callers as well: it may wait for whatever is `async`, and must not block. What
/// takes long or blocks belongs on a thread of its own; after 60 s without an answer the login has failed. Credentials of the
/// daemon's sources are at `conversation.credentials`, and requests of its own go by `conversation.sideRequests`.
public enum OwnHandler: Sendable {
    /// One for challenges of HTTP.
    case challenges(any ChallengeHandler)
    /// One for a gateway. It stands where the configuration says, under the name that it has there.
    case gateway(any GatewayChallengeHandler)
    /// One for a security check of a MobileFirst 8.0 server, at upstreams with `mobilefirst`.
    case securityCheck(any SecurityCheckChallengeHandler)
}

/// The means of this process for challenges: its own handlers, and the kinds that its configuration may name.
enum OwnHandlers {
    private static let all = Mutex<[String: OwnHandler]>([:])
    private static let known = Mutex<[any ChallengeKind.Type]>(ChallengeKinds.all)

    /// The handlers and kinds of this process from now on.
    static func set(_ handlers: [String: OwnHandler], kinds: [any ChallengeKind.Type] = ChallengeKinds.all) {
        all.withLock { $0 = handlers }
        known.withLock { $0 = kinds }
    }

    /// The names of the handlers.
    static var names: Set<String> { all.withLock { Set($0.keys) } }

    /// The kinds.
    static var kinds: [any ChallengeKind.Type] { known.withLock { $0 } }

    /// The handler of that name.
    static func handler(named name: String) -> OwnHandler? { all.withLock { $0[name] } }
}
