// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension MobileFirstState {
    /// Answers `preauth/v1/preauthorize`: runs a scope's checks, with answers or without, and returns their outcomes.
    mutating func preauthorize(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        // The login page in front of it leads here after a login.
        if call.request.method == "GET", rules.guarded.contains(.preauthorize) { return FakeResponse(405) }
        guard call.request.method == "POST", let body = call.request.json, let id = body["client_id"]?.string else {
            notes.violation("preauthorize: no JSON body with a client_id")
            return refusal("BAD_REQUEST", "A JSON body with client_id and scope is needed.")
        }
        var answers = answers(in: body, &notes)
        guard clients[id] != nil else { return unknownClientResponse }
        guard let checks = rules.checks(inScope: body["scope"]?.string ?? "") else {
            return refusal("INVALID_SCOPE", "The scope holds an element that nobody knows.")
        }
        for name in answers.keys.sorted() where !checks.contains(where: { $0.name == name }) {
            notes.violation("preauthorize: answer for \(name), which the scope does not hold")
        }
        if rules.wantsAllAnswersTogether, let missing = missing(answers, checks, id, now: call.now) {
            notes.violation("preauthorize: answers without one for \(missing)")
            answers = [:]
        }
        return reply(outcomes(of: checks, answers, client: id, now: call.now, &notes), now: call.now)
    }

    /// Returns the answers in a body, and records them even if they are ignored, as their number leads to a lockout.
    private func answers(in body: JSON, _ notes: inout MobileFirstNotes) -> [String: JSON] {
        guard let given = body["challengeResponse"], given != .null else { return [:] }
        guard let members = given.members else {
            notes.violation("preauthorize: challengeResponse is no object")
            return [:]
        }
        for member in members {
            notes.record { $0.answers[member.name, default: []].append(member.value) }
        }
        return Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }

    /// Returns a check that waits for an answer and gets none although another one does.
    private func missing(_ answers: [String: JSON], _ checks: [SecurityCheck], _ id: String, now: Int64) -> String? {
        guard !answers.isEmpty else { return nil }
        return checks.first { check in
            answers[check.name] == nil && check.failure == nil
                && clients[id]?.checks[check.name]?.isSuccess(for: check, now: now) != true
        }?.name
    }

    private mutating func outcomes(
        of checks: [SecurityCheck], _ answers: [String: JSON], client id: String, now: Int64,
        _ notes: inout MobileFirstNotes
    ) -> [(name: String, outcome: SecurityCheckState.Outcome)] {
        checks.map { check in
            let answer = answers[check.name]
            let starting = rules.startingAttempts[check.name] ?? check.properties.maxAttempts
            var state = clients[id]?.checks[check.name] ?? SecurityCheckState()
            let wasBlocked = state.isBlocked(for: check, now: now)
            let outcome = state.handle(
                answer, for: check, used: max(check.properties.maxAttempts - starting, 0), now: now)
            clients[id]?.checks[check.name] = state
            note(outcome, of: check.name, isAnswered: answer != nil, wasLookedAt: !wasBlocked, &notes)
            return (check.name, outcome)
        }
    }

    private func note(
        _ outcome: SecurityCheckState.Outcome, of name: String, isAnswered: Bool, wasLookedAt: Bool,
        _ notes: inout MobileFirstNotes
    ) {
        if case .success = outcome {
            guard isAnswered else { return }
            notes.record { $0.logins[name, default: 0] += 1 }
            return
        }
        if isAnswered, wasLookedAt {
            notes.record { $0.wrongAnswers[name, default: 0] += 1 }
        }
        if case .challenge = outcome { notes.record { $0.challenges[name, default: 0] += 1 } }
    }

    /// Returns the answer of the checks. A failure is sent alone; a challenge is sent beside the successes.
    private func reply(_ outcomes: [(name: String, outcome: SecurityCheckState.Outcome)], now: Int64) -> FakeResponse {
        var failures: [JSONMember] = []
        var challenges: [JSONMember] = []
        var successes = [JSONMember("clockSynchronization", ["serverTimeStamp": .integer(now)])]
        for (name, outcome) in outcomes {
            switch outcome {
            case .challenge(let value, _): challenges.append(JSONMember(name, value))
            case .failure(let value): failures.append(JSONMember(name, value))
            case .success(let value): successes.append(JSONMember(name, value))
            }
        }
        if !failures.isEmpty { return .json(403, ["failures": .object(failures)]) }
        if challenges.isEmpty { return .json(200, ["successes": .object(successes)]) }
        return .json(
            401, ["challenges": .object(challenges), "successes": .object(successes)],
            fields: [("WWW-Authenticate", "MFP-Challenge")])
    }
}

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

    /// Answers `preauth/v1/heartbeat`.
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
