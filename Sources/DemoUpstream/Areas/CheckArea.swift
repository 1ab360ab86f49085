// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// Resources that name a security check themselves: 401 with `{"challenges": …}`, answered at `/checks/login`; PIN 1234, three
/// attempts. What is won is the cookie `checks`.
final class CheckArea: DemoArea {
    private struct State {
        var sessions: Set<String> = []
        var attempts: Int64 = 3
    }

    let path = "/checks/"
    private let tell: DemoTeller
    private let state = Mutex(State())

    init(tell: @escaping DemoTeller) { self.tell = tell }

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        if request.path == "/checks/login" { return login(request) }
        let id = request.cookie("checks") ?? ""
        let (isLoggedIn, attempts) = state.withLock { ($0.sessions.contains(id), $0.attempts) }
        if isLoggedIn { return inside(request) }
        tell(.challengeIssued(check: "checks", attempts: attempts))
        return challenge(attempts)
    }

    private func login(_ request: DemoRequest) -> DemoResponse {
        guard let answer = request.json?["challengeResponse"]?["PinCode"] else {
            return .json(400, ["error": "no answer"])
        }
        let id = Samples.randomName()
        let (isRight, attempts) = state.withLock { state in
            let isRight = state.attempts > 0 && answer == ["pin": "1234"]
            state.attempts = isRight ? 3 : max(0, state.attempts - 1)
            if state.sessions.count > 10_000 { state.sessions.removeAll() }
            if isRight { state.sessions.insert(id) }
            return (isRight, state.attempts)
        }
        tell(isRight ? .answerAccepted(check: "checks") : .answerRejected(check: "checks"))
        if isRight {
            return .json(
                200, ["successes": ["PinCode": [:]]], [("Set-Cookie", "checks=\(id); Path=/checks; HttpOnly")])
        }
        return attempts > 0
            ? challenge(attempts) : .json(403, ["failures": ["PinCode": ["failure": "Account blocked"]]])
    }

    private func challenge(_ attempts: Int64) -> DemoResponse {
        .json(401, ["challenges": ["PinCode": ["remainingAttempts": .integer(attempts)]]])
    }
}
