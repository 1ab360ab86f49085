// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Resources that name a security check themselves: 401 with `{"challenges": …}`, answered at `/checks/login`; PIN 1234, three
/// attempts. What is won is the cookie `checks`.
package final class CheckArea: Sendable {
    private struct State {
        var sessions: [String: ContinuousClock.Instant?] = [:]
        var attempts: Int64 = 3
    }

    private let state = Mutex(State())
    private let recorder: Recorder
    /// When sessions end by themselves.
    package let sessionEnd = SessionEnd()

    init(recorder: Recorder) {
        self.recorder = recorder
    }

    /// Ends every session.
    package func dropSessions() { state.withLock { $0.sessions.removeAll() } }

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        if request.path == "/checks/login" { return login(request) }
        let end = request.cookie("checks").flatMap { id in state.withLock { $0.sessions[id] } }
        guard let end, !end.isOver else { return challenge(request) }
        if sessionEnd.isLast() { dropSessions() }
        return inside(request)
    }

    private func challenge(_ request: FakeRequest) -> FakeResponse {
        let attempts = state.withLock { $0.attempts }
        recorder.note { $0.challenges["checks", default: 0] += 1 }
        return .json(401, ["challenges": ["PinCode": ["remainingAttempts": .integer(attempts)]]])
    }

    private func login(_ request: FakeRequest) -> FakeResponse {
        guard request.method == "POST", let answer = request.json?["challengeResponse"]?["PinCode"] else {
            recorder.note { $0.violations.append("checks: an answer is a POST of JSON with challengeResponse") }
            return .json(400, ["error": "no answer"])
        }
        let isRight = answer == ["pin": "1234"]
        let id = randomName()
        let attempts = state.withLock { state in
            state.attempts = isRight ? 3 : max(0, state.attempts - 1)
            if isRight { state.sessions[id] = .some(sessionEnd.instant) }
            return state.attempts
        }
        recorder.note { record in
            record.answers["checks", default: []].append(answer)
            if isRight {
                record.logins["checks", default: 0] += 1
            } else {
                record.wrongAnswers["checks", default: 0] += 1
            }
        }
        if isRight {
            return .json(
                200, ["successes": ["PinCode": [:]]],
                fields: [("Set-Cookie", "checks=\(id); Path=/checks; HttpOnly\(sessionEnd.attributes)")])
        }
        guard attempts > 0 else { return .json(403, ["failures": ["PinCode": ["failure": "Account blocked"]]]) }
        return .json(401, ["challenges": ["PinCode": ["remainingAttempts": .integer(attempts)]]])
    }
}
