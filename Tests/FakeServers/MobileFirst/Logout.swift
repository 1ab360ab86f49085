// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension MobileFirstState {
    /// `preauth/v1/logout`: a check back to expired, and its remembered user forgotten. Tokens already issued stay good.
    mutating func logout(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        guard let id = asserted(call, &notes) else { return unassertedResponse(call) }
        guard let check = call.request.form?["security_check"], rules.named(check) != nil else {
            return refusal("BAD_REQUEST", "security_check names no check.")
        }
        clients[id]?.checks[check]?.logout()
        notes.record { $0.logouts.append(check) }
        return .json(200, .empty)
    }

    /// `preauth/v1/heartbeat`: a sign of life.
    func heartbeat(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        asserted(call, &notes) == nil ? unassertedResponse(call) : .json(200, .empty)
    }

    private func asserted(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> String? {
        guard call.request.method == "POST", let form = call.request.form, let id = assertedClient(form),
            clients[id] != nil
        else { return nil }
        guard let problem = assertionProblem(form, client: id, code: nil, now: call.now) else { return id }
        notes.violation("\(call.path): \(problem)")
        return nil
    }

    private func unassertedResponse(_ call: MobileFirstCall) -> FakeResponse {
        guard let id = call.request.form.flatMap(assertedClient), clients[id] == nil else {
            return refusal("INVALID_ASSERTION", "The client assertion is missing or wrong.", status: 401)
        }
        return unknownClientResponse
    }
}
