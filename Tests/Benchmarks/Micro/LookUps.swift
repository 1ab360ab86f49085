// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import HTTPWire
import Secrets

@testable import ChallengeClient

// Look-ups of a request.
extension MicroBenchmark {
    static let lookUps = [
        MicroBenchmark(name: "look a held session up") {
            let gate = SharedAttemptGate(now: { 0 })
            var cache = RouteCache()
            for number in 0..<100 {
                let slot = slot("challenge \(number % 4)")
                _ = cache.addRoute([slot], for: RouteKey(method: .get, target: target("/path/\(number)")))
                let ticket = ExchangeTicket(worker: 0, exchange: 1)
                let answer = gate.change { $0.requestSession(slot.key, rejected: nil, waiter: ticket, now: 0) }
                guard answer == .logIn else { continue }
                let field = InjectedField(name: .authorization, value: Secret("Bearer \(number)"))
                _ = gate.finish(slot.key, with: .success(Session(fields: [field])))
            }
            let asked = target("/path/57?query")
            return {
                guard let route = cache.route(method: .get, target: asked) else { preconditionFailure("it is known") }
                route.refresh(from: gate, now: 0)
                guard route.fields !== SessionFields.none else { preconditionFailure("it is held") }
            }
        },
        MicroBenchmark(name: "find the pattern of 100 that matches") {
            var table = LocationTable<Int>()
            for number in 0..<100 {
                table.register(number, at: try LocationPattern("https://*.example.com/app\(number)/*"))
            }
            table.register(100, at: try LocationPattern("https://*.example.com/**"))
            let location = try Location("https://www.example.com/app57/orders/4711")
            return {
                guard table.match(location)?.handlers == [57] else { preconditionFailure("it matches") }
            }
        },
    ]

    private static func slot(_ name: String) -> RouteSessions.Slot {
        let key = SessionKey(
            origin: Origin(scheme: .https, host: "bank.example"), challenge: name, credential: "ann")
        return .init(
            login: Authenticator(name: name, trigger: .ahead, isAhead: true, key: key, credentials: ["ann"]) { _ in
                NoLogin()
            }, scope: .empty)
    }

    private static func target(_ text: String) -> ByteQueue {
        var queue = ByteQueue()
        queue.append(Array(text.utf8).span)
        return queue
    }
}

private struct NoLogin: SessionLogin {
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        throw LoginFailure(.failed, challenge: "", detail: "")
    }
}
