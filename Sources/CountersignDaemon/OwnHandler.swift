// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
public import ChallengeHandling
internal import Synchronization

/// Challenge handler of a program that embeds the daemon.
///
/// The handler runs on a thread of the daemon that also serves callers: it may wait for `async` functions, and must not
/// block. Long or blocking work needs a separate thread. A login fails after 60 s without an answer of its handler. The
/// handler reads credentials of the daemon's sources from `conversation.credentials`, and sends its own requests with
/// `conversation.sideRequests`.
public enum OwnHandler: Sendable {
    /// A handler for HTTP challenges.
    case challenges(any ChallengeHandler)
    /// A handler for a gateway, under the name and at the locations of the configuration.
    case gateway(any GatewayChallengeHandler)
    /// A handler for a security check of a MobileFirst 8.0 server, at upstreams with `mobilefirst`.
    case securityCheck(any SecurityCheckChallengeHandler)
}

/// Registry of the process: its own handlers, and the kinds of challenges that its configuration may name.
enum OwnHandlers {
    private static let all = Mutex<[String: OwnHandler]>([:])
    private static let known = Mutex<[any ChallengeKind.Type]>(ChallengeKinds.all)

    /// Replaces the handlers and kinds of this process.
    static func set(_ handlers: [String: OwnHandler], kinds: [any ChallengeKind.Type] = ChallengeKinds.all) {
        all.withLock { $0 = handlers }
        known.withLock { $0 = kinds }
    }

    static var names: Set<String> { all.withLock { Set($0.keys) } }

    /// The kinds of challenges.
    static var kinds: [any ChallengeKind.Type] { known.withLock { $0 } }

    /// Returns the handler with this name; `nil` if it does not exist.
    static func handler(named name: String) -> OwnHandler? { all.withLock { $0[name] } }
}

/// Authenticators of the process's own handlers.
///
/// Their logins share cached answers, which survive a reload.
final class OwnHandlerMaterial: OwnHandlerSource {
    private struct CacheKey: Hashable {
        let challenge: String
        let origin: Origin
    }

    /// Caller of the handlers, on the workers' loops: the unit forbids the thread priorities that the runtime's own threads need.
    let calls = HandlerCalls(limit: .seconds(60), isApart: false)
    private let caches = Mutex<[CacheKey: AnswerCache]>([:])

    func authenticator(_ handler: String, of challenge: String, at upstream: ProtectedUpstream) -> Authenticator? {
        let origin = upstream.url.origin
        return switch OwnHandlers.handler(named: handler) {
        case .gateway(let handler):
            HandledGateway(handler, name: challenge, caller: calls).login(at: origin, base: upstream.url)
        case .challenges(let handler):
            HandledChallenges(handler, name: challenge, caller: calls)
                .login(at: origin, answers: answerCache(of: challenge, at: origin))
        case .securityCheck, nil: nil
        }
    }

    func securityCheck(_ handler: String, of challenge: String) -> HandledCheck? {
        guard case .securityCheck(let handler) = OwnHandlers.handler(named: handler) else { return nil }
        return HandledCheck(handler, name: challenge, caller: calls)
    }

    /// Returns the cached answers of a challenge at a server.
    private func answerCache(of challenge: String, at origin: Origin) -> AnswerCache {
        caches.withLock { caches in
            let key = CacheKey(challenge: challenge, origin: origin)
            if let known = caches[key] { return known }
            let cache = AnswerCache()
            caches[key] = cache
            return cache
        }
    }
}
