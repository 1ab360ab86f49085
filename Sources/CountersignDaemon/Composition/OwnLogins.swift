// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Synchronization

/// The handlers of this process, with what their logins share and keep over a reload.
final class OwnHandlerMaterial: OwnHandlerSource {
    private struct Place: Hashable {
        let challenge: String
        let origin: Origin
    }

    /// Calls them, on the loops that serve callers: the runtime's own threads want priorities, which the unit forbids.
    let calls = HandlerCalls(limit: .seconds(60), isApart: false)
    private let books = Mutex<[Place: AnswerBook]>([:])

    func authenticator(_ handler: String, of challenge: String, at upstream: ProtectedUpstream) -> Authenticator? {
        let origin = upstream.url.origin
        return switch OwnHandlers.handler(named: handler) {
        case .gateway(let handler):
            HandledGateway(handler, name: challenge, caller: calls).login(at: origin, base: upstream.url)
        case .challenges(let handler):
            HandledChallenges(handler, name: challenge, caller: calls)
                .login(at: origin, book: book(of: challenge, at: origin))
        case .securityCheck, nil: nil
        }
    }

    func securityCheck(_ handler: String, of challenge: String) -> HandledCheck? {
        guard case .securityCheck(let handler) = OwnHandlers.handler(named: handler) else { return nil }
        return HandledCheck(handler, name: challenge, caller: calls)
    }

    /// The answers of a challenge at a server.
    private func book(of challenge: String, at origin: Origin) -> AnswerBook {
        books.withLock { books in
            let place = Place(challenge: challenge, origin: origin)
            if let known = books[place] { return known }
            let book = AnswerBook()
            books[place] = book
            return book
        }
    }
}
