// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Settings
internal import Synchronization

/// From `handler:` to the logins that the program's own handlers make.
extension LoginComposition {
    /// The login of a gateway's or a scheme's own handler at an upstream.
    func ownLogin(_ name: String, of challenge: ChallengeSettings, at upstream: UpstreamSettings) -> Authenticator? {
        let own = clients.own
        let origin = upstream.url.origin
        switch OwnHandlers.handler(named: name) {
        case .gateway(let handler):
            return HandledGateway(handler, name: challenge.name, caller: own.calls)
                .login(at: origin, base: upstream.url)
        case .challenges(let handler):
            return HandledChallenges(handler, name: challenge.name, caller: own.calls)
                .login(at: origin, book: own.book(of: challenge.name, at: origin))
        case .securityCheck, nil:
            return nil
        }
    }

    /// The own handlers of security checks that stand at an upstream, as `securityChecks(of:api:)` finds the others.
    func ownChecks(of upstream: UpstreamSettings, api: WebURL) -> [OwnCheckHandler] {
        var everywhere: [OwnCheckHandler] = []
        var table = LocationTable<OwnCheckHandler>()
        for challenge in settings.challenges {
            guard case .own(let name) = challenge.kind,
                case .securityCheck(let handler) = OwnHandlers.handler(named: name)
            else { continue }
            let own = OwnCheckHandler(handler, name: challenge.name)
            switch challenge.place {
            case .upstream(let name): if name == upstream.name { everywhere.append(own) }
            case .locations(let patterns): for pattern in patterns { table.register(own, at: pattern) }
            }
        }
        let here = table.match(Location(upstream.url))?.handlers ?? []
        let there = table.match(Location(api))?.handlers ?? []
        var seen: Set<String> = []
        return (everywhere + here + there).filter { seen.insert($0.securityCheck).inserted }
    }
}

/// A program's handler of a security check, under the challenge's name.
struct OwnCheckHandler: SecurityCheckChallengeHandler {
    private let handler: any SecurityCheckChallengeHandler
    let challengeName: String

    init(_ handler: any SecurityCheckChallengeHandler, name: String) {
        self.handler = handler
        challengeName = name
    }

    var securityCheck: String { handler.securityCheck }
    var latchKey: LatchKey? { handler.latchKey }

    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        try await handler.handleChallenge(challenge)
    }

    func handleSuccess(_ success: JSONValue) async { await handler.handleSuccess(success) }
    func handleFailure(_ failure: JSONValue) async { await handler.handleFailure(failure) }
}

/// What the logins of own handlers share, and keep over a reload.
final class OwnHandlerMaterial: Sendable {
    private struct Place: Hashable {
        let challenge: String
        let origin: Origin
    }

    /// Calls them, on the loops that serve callers: the runtime's own threads want priorities, which the unit forbids.
    let calls = HandlerCalls(limit: .seconds(60), isApart: false)
    private let books = Mutex<[Place: AnswerBook]>([:])

    /// The answers of a challenge at a server.
    func book(of challenge: String, at origin: Origin) -> AnswerBook {
        books.withLock { books in
            let place = Place(challenge: challenge, origin: origin)
            if let known = books[place] { return known }
            let book = AnswerBook()
            books[place] = book
            return book
        }
    }
}
