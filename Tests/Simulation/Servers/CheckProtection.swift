// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A security check that a resource names itself, with the attempts that remain: the judge of rule 6.
///
/// Each challenge begins a conversation, whose cookie comes back with its answer.
final class CheckProtection: Protection {
    /// The server's measure against wrong answers.
    enum Manner { case counts, locks }

    /// A conversation of one login.
    private struct Conversation {
        /// The checks that it demands.
        var checks: Set<String>
        /// True if the answer was right, and asked for again.
        var isAnswered = false
    }

    private static let kept = 1
    private static let cookie = "JSESSIONID"
    private static let conversationCookie = "CHECK"
    let account: Account
    private let manner: Manner
    private var codes: OneTimeCodes?
    private let nodes: OtherNodes
    private var conversations: [String: Conversation] = [:]
    /// The time at which each session ends, in ms since 1970.
    private var sessions: [String: Int64] = [:]
    private var last = 0
    private let most: Int
    private var remaining: Int
    /// True if the number of attempts is written in words when it is small.
    private let writesWords: Bool
    private var lockedUntil: Int64 = 0
    let needsBody = true

    init(_ account: Account, manner: Manner, codes: OneTimeCodes? = nil) {
        let simulation = account.simulation
        self.account = account
        self.manner = manner
        self.codes = codes
        nodes = OtherNodes(simulation)
        most = simulation.chance.pick(2...3)
        writesWords = simulation.chance.oneIn(2)
        remaining = most
    }

    var usesCodes: Bool { codes != nil }
    var isShortLived: Bool { usesCodes }
    var locksAccounts: Bool { manner == .locks }

    var configuration: [String] {
        let answer = usesCodes ? "{ pin: \"{pin}\", otp: \"{totp}\" }" : "{ pin: \"{pin}\" }"
        return ["security-check: Pin", "answer: \(answer)", "keep-attempts: \(Self.kept)", "answer-url: /answer"]
    }

    func fields(of value: String) -> [String: String] {
        usesCodes ? ["pin": value, "totp-seed": OneTimeCodes.seed] : ["pin": value]
    }

    func examine(_ request: ServerRequest) -> Examination {
        if let id = request.cookie(Self.cookie), sessions[id, default: 0] > account.simulation.now {
            return .pass(nil)
        }
        if usesCodes, !request.isSide, nodes.useCode() { codes?.isTakenElsewhere(at: account.simulation.now) }
        return .demand(refusal())
    }

    func answer(to request: ServerRequest) -> ServerAnswer? {
        guard request.path.hasSuffix("/answer") else { return nil }
        let simulation = account.simulation
        guard request.method == "POST", request.isSide else {
            simulation.violated("rule 11: an answer was not sent by a login")
            return ServerAnswer(405)
        }
        if manner == .counts, remaining <= Self.kept {
            simulation.violated("rule 6: the last attempt of \(account.name) is used")
        }
        let text = String(decoding: request.body, as: UTF8.self)
        let id = request.cookie(Self.conversationCookie) ?? ""
        if let conversation = conversations[id] {
            if conversation.isAnswered {
                simulation.violated("rule 6: a right value of \(account.name) is sent twice in one login")
            }
            if conversation.checks.contains(where: { !text.contains("\"\($0)\":") }) {
                simulation.violated("rule 7: an answer to some of the checks \(conversation.checks.sorted())")
            }
        }
        let pin = text.components(between: "\"pin\":\"", and: "\"") ?? ""
        let attempt = account.judge(pin, sentAt: request.sentAt)
        if usesCodes {
            let code = text.components(between: "\"otp\":\"", and: "\"") ?? ""
            if codes?.take(code, for: account) == false { return ServerAnswer(400) }
        }
        if manner == .locks, !attempt.isRight || lockedUntil > simulation.now { return locked(attempt) }
        guard attempt.isRight else {
            remaining -= 1
            return refusal().judging(attempt)
        }
        remaining = most
        if simulation.isFault(6) {
            let again = demand("{\"successes\":{\"Pin\":{}},\"challenges\":{\"Pin\":{}}}")
            conversations["\(last)"]?.isAnswered = true
            return again.judging(attempt)
        }
        return success().judging(attempt)
    }

    private func success() -> ServerAnswer {
        last += 1
        let id = "\(Simulation.secretMark)check\(account.name)n\(last)"
        let life = usesCodes ? 10 : 100_000
        sessions[id] = account.simulation.now + Int64(life) * 1_000
        return ServerAnswer(
            200,
            [
                ("Content-Type", "application/json"),
                ("Set-Cookie", "\(Self.cookie)=\(id); Path=/; Max-Age=\(life)"),
            ], body: "{\"successes\":{\"Pin\":{\"user\":{}}}}")
    }

    private func locked(_ attempt: Attempt) -> ServerAnswer {
        let simulation = account.simulation
        if !attempt.isRight {
            lockedUntil = max(lockedUntil, simulation.now + Int64(simulation.chance.pick(1...20)) * 1_000)
        }
        attempt.locks = true
        account.refuses(attempt.value)
        let wait = max(1, (lockedUntil - simulation.now) / 1_000)
        return ServerAnswer(
            403, [("Content-Type", "application/json"), ("Retry-After", "\(wait)")],
            body: "{\"failures\":{\"Pin\":{\"reason\":\"Account blocked\"}}}"
        ).judging(attempt)
    }

    func isCarried(by request: ServerRequest) -> Bool { request.cookie(Self.cookie) != nil }

    func refusal() -> ServerAnswer {
        // An administrator adds a check that this daemon does not know.
        let isMore = account.simulation.isFault(10)
        let count = writesWords && remaining <= Self.kept ? "\"one\"" : "\(remaining)"
        let value = manner == .counts ? "{\"remainingAttempts\":\(count)}" : "{}"
        let answer = demand("{\"challenges\":{\"Pin\":\(value)\(isMore ? ",\"Device\":{}" : "")}}")
        if isMore { conversations["\(last)"]?.checks.insert("Device") }
        return answer
    }

    private func demand(_ body: String) -> ServerAnswer {
        last += 1
        conversations["\(last)"] = Conversation(checks: ["Pin"])
        return ServerAnswer(
            401, [("Content-Type", "application/json"), ("Set-Cookie", "\(Self.conversationCookie)=\(last); Path=/")],
            body: body)
    }

    func isDemand(_ status: Int, _ body: String) -> Bool { status == 401 }

    func endSessions() {
        account.ends += 1
        sessions = [:]
    }

    /// An operator at the server gives the attempts back.
    func giveAttemptsBack() { (remaining, lockedUntil) = (most, 0) }

    func tell(_ process: SimulatedProcess) { nodes.tell(process) }
}
