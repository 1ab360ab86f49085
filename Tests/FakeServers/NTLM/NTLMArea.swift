// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// An area behind NTLM (MS-NTHT): user ann, password demo, any domain. What it authenticates are connections, not requests.
final class NTLMArea: Sendable {
    private enum Step {
        case challenged([UInt8])
        case authenticated
    }

    private let recorder: Recorder
    /// The latest connections that have got somewhere, by their numbers.
    private let states = Mutex<[UInt64: Step]>([:])
    private static let limit = 1024

    init(recorder: Recorder) { self.recorder = recorder }

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        guard let written = request.authorization("NTLM") else {
            if case .authenticated = state(of: request) { return inside(request) }
            recorder.note { $0.challenges["ntlm", default: 0] += 1 }
            return unauthorized("NTLM")
        }
        let message = Base64.decode(written) ?? []
        if NTLMMessage.kind(of: message) == 1 {
            let challenge = (0..<8).map { _ in UInt8.random(in: 0...255) }
            set(.challenged(challenge), of: request)
            return unauthorized("NTLM \(Base64.encode(NTLMMessage.challenge(challenge)))")
        }
        guard case .challenged(let challenge) = state(of: request), let answer = NTLMAnswer(parsing: message) else {
            recorder.note { $0.violations.append("\(request.path): an NTLM message out of its order") }
            return unauthorized("NTLM")
        }
        let isRight = answer.user == "ann" && answer.knows("demo", challenge: challenge)
        set(isRight ? .authenticated : nil, of: request)
        recorder.note { record in
            record.answers["ntlm", default: []].append(["user": .string(answer.user)])
            if isRight {
                record.logins["ntlm", default: 0] += 1
            } else {
                record.wrongAnswers["ntlm", default: 0] += 1
            }
        }
        return isRight ? inside(request) : unauthorized("NTLM")
    }

    private func unauthorized(_ challenge: String) -> FakeResponse {
        .text(401, "Please say who you are.\n", fields: [("WWW-Authenticate", challenge)])
    }

    private func state(of request: FakeRequest) -> Step? { states.withLock { $0[request.connection] } }

    private func set(_ step: Step?, of request: FakeRequest) {
        states.withLock { states in
            states[request.connection] = step
            if states.count > Self.limit, let oldest = states.keys.min() { states[oldest] = nil }
        }
    }
}
