// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// A server: its resources, their protection, and the requests that it carried out. The judge of rule 2.
final class SimulatedServer {
    /// The addresses without a challenge.
    private static let open = "/base/open/"
    /// The addresses that guests write to.
    private static let guests = "/base/guest/"
    let simulation: Simulation
    let name: String
    let port: Int
    let protection: any Protection
    /// Its origins; the first is that of the upstream.
    let origins: [String]
    /// The requests that were carried out, by their number.
    private(set) var executed: [Int: Int] = [:]
    /// The last answers to requests that the protection lets pass, by their number.
    private(set) var sent: [Int: ServerAnswer] = [:]
    let habits: ServerHabits
    /// The requests that it carried out and answered with 408: the server after it was too slow.
    private(set) var timedOut: Set<Int> = []
    /// The time at which it last ended a connection at rest, in ms since 1970.
    private(set) var lastRestEnd: Int64 = 0
    /// The number of connections that it has ended at rest.
    private(set) var restEnds = 0
    /// The rests that it may end before it answers again: it does not turn away one request forever.
    private var restsToEnd = 2
    /// The most bytes of a body that the proxy keeps.
    static let keptBody = 4_096
    /// True if many ask for one of its resources again and again.
    let isPolled: Bool
    /// The resources that many requests ask for.
    var resources = SharedResources()
    /// The time until which it can check no password, in ms since 1970.
    var directoryAwayUntil: Int64 = 0
    /// The number of times that each request was sent, whatever the answer.
    private var received: [Int: Int] = [:]

    init(
        _ name: String, port: Int, in simulation: Simulation, _ protection: any Protection
    ) {
        self.simulation = simulation
        self.name = name
        self.port = port
        self.protection = protection
        origins = protection.origins.isEmpty ? ["http://\(protection.host):\(port)"] : protection.origins
        habits = ServerHabits(&simulation.chance, of: protection)
        isPolled = simulation.chance.oneIn(3)
        if simulation.weather.hasFaults, simulation.chance.oneIn(3) {
            directoryAwayUntil = simulation.now + Int64(simulation.chance.pick(1...20_000))
        }
    }

    var authority: String { origins[0].components(after: "//") ?? "" }

    /// Returns true if it is reached at an origin; by all host names if none is special.
    func isAt(_ origin: Origin) -> Bool {
        protection.origins.isEmpty ? Int(origin.port) == port : origins.contains("\(origin)")
    }

    /// Requests that are refused because of the server's protection, and requests for another protocol.
    var visits: [Visit] { protection.visits(at: name) }

    // MARK: Answers

    /// Returns the protection's verdict on a request whose body is still to come.
    func examineHead(of request: ServerRequest) -> Examination {
        let examination = examine(protection.received(request))
        guard case .demand(var answer) = examination else { return examination }
        answer.closes = true
        _ = noteRefusal(of: request)
        simulation.tell("\(name): head of \(request.method) \(request.target): \(answer.status)")
        return .demand(answer)
    }

    private func examine(_ request: ServerRequest) -> Examination {
        request.path.contains("/open/") || isGuestbook(request.path) ? .pass(nil) : protection.examine(request)
    }

    /// Returns true if guests' pages at a path need no session.
    private func isGuestbook(_ path: String) -> Bool { path.hasPrefix(Self.guests) && protection.isGuestbookOpen }

    /// Returns the protection's verdict on a request with a part of its body.
    func examineBeginning(of request: ServerRequest) -> Examination {
        // A session may end under a body.
        if simulation.weather.endsSessions, simulation.isStormy, simulation.chance.oneIn(8) { protection.endSessions() }
        let examination = examine(protection.received(request))
        guard case .demand(var answer) = examination else { return examination }
        answer.closes = simulation.chance.oneIn(2)
        _ = noteRefusal(of: request)
        simulation.tell("\(name): beginning of \(request.method) \(request.target): \(answer.status)")
        return .demand(readable(answer, by: request))
    }

    /// Checks a part of a body that no request waits for any more.
    func check(_ part: [UInt8], of request: ServerRequest) {
        guard let order = order(of: request), !order.body.starts(with: part) else { return }
        simulation.violated("\(order.number): \(part.count) bytes of its body are not its beginning")
    }

    /// Returns true if it may end a connection at rest now, and notes that it does.
    func endsRest() -> Bool {
        guard simulation.isStormy, restsToEnd > 0 else { return false }
        restsToEnd -= 1
        lastRestEnd = simulation.now
        restEnds += 1
        return true
    }

    /// Returns the answer to a whole request; `nil` if there never is one.
    ///
    /// `examined`: the protection's verdict on its head.
    func answer(to request: ServerRequest, examined: Examination?) -> ServerAnswer? {
        restsToEnd = 2
        SecretWatch.check(request, at: self)
        let request = protection.received(request)
        let answer = made(request, examined).map { readable($0, by: request) }
        simulation.tell(
            "\(name): \(request.isSide ? "side " : "")\(request.method) \(request.target) with "
                + "\(request.value("authorization") ?? request.value("cookie") ?? "nothing"): "
                + "\(answer.map { "\($0.status)" } ?? "nothing")")
        return answer
    }

    private func made(_ request: ServerRequest, _ examined: Examination?) -> ServerAnswer? {
        if simulation.isFault(isHelpless(before: request) ? 1 : 40) {
            loseAttempt(of: request, examined)
            // The credentials of the request may have been seen, without any report.
            protection.account.excuse()
            return fault()
        }
        check(request)
        simulation.carried.note(request, at: self)
        if !request.isSide { simulation.carried.ages.isSeen(request, at: self) }
        if let own = protection.answer(to: request) { return own }
        if request.isSide, request.method != "GET", !SecretWatch.owners(in: request.body).isEmpty {
            simulation.violated("rule 11: a secret is sent to \(request.path)")
        }
        let path = request.path
        if path.hasPrefix("/base/fickle/"), let digest = protection as? DigestProtection {
            if case .pass(let attempt)? = examined { attempt?.isMoot() }
            // A login at an address that only callers know fails for all of them.
            if request.isSide { protection.account.disturbed() }
            return digest.outdatedAnswer(to: request)
        }
        if path.hasPrefix(SwitchedProtocol.path) { return SwitchedProtocol.answer(to: request, of: protection) }
        if path.contains("/open/") {
            protection.isPassed(request)
            return carryOut(request, attempt: nil)
        }
        if isGuestbook(path) { return guestPage(for: request, attempt: nil) }
        switch examined ?? protection.examine(request) {
        case .demand(let answer):
            _ = noteRefusal(of: request)
            return answer
        case .pass(let attempt):
            if path.contains("/forbidden/"), resources.refuses(path) {
                attempt?.isMoot()
                // A session that was just established for it does not cause another login (rule 4).
                if noteRefusal(of: request), !simulation.carried.ages.isOld(request, at: self) {
                    // A body that is not kept lets nothing be sent again: only the next request learns of it.
                    simulation.sessions.refused(
                        "\(request.method) \(path)", of: protection.challengeName,
                        isRemembered: request.body.count <= SimulatedServer.keptBody && !request.isIncomplete)
                }
                return protection.refusal()
            }
            if path.hasPrefix(Self.guests) { return guestPage(for: request, attempt: attempt) }
            guard path.hasSuffix("/") || ["/base/whoami", "/welcome"].contains(path) else {
                return carryOut(request, attempt: attempt)
            }
            var answer = ServerAnswer(200, [("Content-Type", "text/plain")], body: "welcome")
            answer.attempt = attempt
            return answer
        }
    }

    /// Returns an answer in the coding that a request prefers: a page in `br` is one that the proxy cannot read (rule 12).
    private func readable(_ answer: ServerAnswer, by request: ServerRequest) -> ServerAnswer {
        let isPage = answer.fields.contains { $0.value.hasPrefix("text/html") }
        let isWritten = answer.fields.contains { ["Content-Encoding", "X-Answer"].contains($0.name) }
        guard isPage, !isWritten, request.value("accept-encoding")?.contains("br") == true else { return answer }
        var coded = answer
        coded.fields.append(("Content-Encoding", "br"))
        coded.body = answer.body.map { $0 ^ 0xA5 }
        return coded
    }

    /// Notes that a request is refused. Returns true if that may lead to a login.
    private func noteRefusal(of request: ServerRequest) -> Bool {
        guard !request.isSide, let order = order(of: request) else { return false }
        let cookies = (request.value("cookie") ?? "").split(separator: "; ").filter { !$0.hasPrefix("mine=") }
        let session = request.value("authorization") ?? cookies.joined(separator: "; ")
        simulation.carried.ages.isRefused(order, request, at: self)
        // The refusal of an old session leads to no login.
        let isAlone = simulation.isAlone && !simulation.carried.ages.isOld(request, at: self)
        return resources.isRefused(order, session: session, isAlone: isAlone, now: simulation.now)
    }

    /// Examines the credentials of a request whose sender does not learn the verdict.
    private func loseAttempt(of request: ServerRequest, _ examined: Examination?) {
        guard examined != nil || isHelpless(before: request) || simulation.chance.oneIn(2) else { return }
        var attempt: Attempt?
        if examined == nil, let own = protection.answer(to: request) {
            attempt = own.attempt
        } else if examined != nil || !request.path.contains("/open/") {
            switch examined ?? protection.examine(request) {
            case .demand(let answer): attempt = answer.attempt
            case .pass(let own): attempt = own
            }
        }
        guard request.isSide, request.method == "HEAD" else { return attempt?.isLost() ?? () }
        // An application may fail at HEAD only: then the request that waits is sent at once, and a refusal is looked into.
        attempt?.isMoot()
        protection.account.excuse()
    }

    /// Returns true while the verifier of passwords is away, for a request that carries one.
    private func isHelpless(before request: ServerRequest) -> Bool {
        simulation.now < directoryAwayUntil
            && (request.value("authorization") != nil || request.isSide && request.method == "POST")
    }

    /// Returns the answer of a server in trouble.
    private func fault() -> ServerAnswer? {
        switch simulation.chance.below(4) {
        case 0: return nil
        case 1: return ServerAnswer(503, [("Retry-After", "2")], body: "busy")
        case 2: return ServerAnswer(500, body: "broken")
        default: return ServerAnswer(429, body: "too many")
        }
    }

    // MARK: Resources

    /// Returns a page that a guest has written, which changes nothing.
    private func guestPage(for request: ServerRequest, attempt: Attempt?) -> ServerAnswer? {
        guard let order = order(of: request), var answer = protection.guestPage(order.number, for: request) else {
            return carryOut(request, attempt: attempt)
        }
        answer.fields.append(("X-Answer", "\(order.number)"))
        sent[order.number] = answer
        answer.attempt = attempt
        return answer
    }

    private func carryOut(_ request: ServerRequest, attempt: Attempt?) -> ServerAnswer? {
        guard let order = order(of: request) else {
            // A login examines the address of a request that has a fault in its body.
            if request.isSide, request.path == "/base/r/0" || request.path.components(after: "/shared") != nil {
                var answer = ServerAnswer(200, body: "looked at")
                answer.attempt = attempt
                return answer
            }
            simulation.violated("a request that no caller has sent: \(request.method) \(request.target)")
            return ServerAnswer(404)
        }
        if request.isSide {
            if request.method != "GET" && request.method != "HEAD" {
                simulation.violated("rule 2: a login carries out \(request.method) \(request.target)")
            }
            var answer = ServerAnswer(200, [("Content-Type", "text/plain")], body: "looked at")
            answer.attempt = attempt
            return answer
        }
        check(request, against: order)
        let isUnprotected = habits.isPartlyOpen && request.path.hasPrefix(Self.open)
        if isUnprotected, request.holdsCredential {
            simulation.violated("rule 11: \(order.number) brings a credential to an address without a challenge")
        }
        if !order.isRead, protection.isCarriedUnasked, !isUnprotected, !simulation.weather.hasFaults,
            !protection.isCarried(by: request)
        {
            simulation.violated(
                "rule 2: \(order.method) \(order.number) is carried out for nobody: it did not wait for the login")
        }
        executed[order.number, default: 0] += 1
        simulation.carried.ages.isCarriedOut(order, request, at: self)
        if !simulation.weather.losesCallers, simulation.setting.nodes == 1 { resources.isCarriedOut(order) }
        if executed[order.number, default: 0] > 1, !order.isIdempotent || !simulation.weather.hasFaults {
            simulation.violated(
                "rule 2: \(order.method) \(order.number) is carried out \(executed[order.number, default: 0]) times")
        }
        if habits.tellsEnd, !order.isIdempotent, attempt == nil, simulation.chance.oneIn(12) {
            timedOut.insert(order.number)
            var answer = ServerAnswer(408)
            answer.closes = true
            return answer
        }
        var answer = order.answer(closes: &simulation.chance)
        PageLook.look(of: order.number, at: self)?.dress(&answer, to: request, at: self)
        sent[order.number] = answer
        if simulation.isFault(50), !answer.body.isEmpty {
            answer.pause = nil
            answer.isTruncated = answer.framing != .untilClose
            answer.closes = true
        }
        if simulation.isFault(60) {
            attempt?.isLost()
            return nil
        }
        answer.attempt = attempt
        if answer.status < 400 { Courtesies.add(to: &answer, for: request, using: &simulation.chance) }
        protection.finish(&answer, to: request, for: order)
        return answer
    }

    private func order(of request: ServerRequest) -> Order? {
        let digits = request.path.split(separator: "/").last.map(String.init) ?? ""
        return (SharedResources.order(in: request.target) ?? Int(digits)).flatMap { simulation.orders[$0] }
    }

    private func check(_ request: ServerRequest) {
        guard !request.isSide, let order = order(of: request) else { return }
        received[order.number, default: 0] += 1
        let most = 3 + 8 + 4 + 4
        if received[order.number, default: 0] > most {
            simulation.violated("rule 2: \(order.number) is sent \(most + 1) times")
        }
    }

    private func check(_ request: ServerRequest, against order: Order) {
        if order.server !== self {
            simulation.violated("\(order.number): \(order.target) of \(order.server.name) reaches \(name)")
        }
        if request.method != order.method {
            simulation.violated("\(order.number): \(order.method) became \(request.method)")
        }
        if request.target != "/base" + protection.withoutOwn(order.target) {
            simulation.violated("\(order.number): the target became \(request.target)")
        }
        if request.body != order.body {
            simulation.violated("\(order.number): the body became \(request.body.count) bytes of \(order.body.count)")
        }
        if request.value("x-order") != "\(order.number)" { simulation.violated("\(order.number): X-Order is lost") }
        let trailer = request.trailers.first { $0.name.lowercased() == "x-sum" }?.value
        if order.isChunked, trailer != " \(order.number)", trailer != "\(order.number)" {
            simulation.violated("\(order.number): the trailer is \(trailer ?? "lost")")
        }
        if let own = order.cookie, request.cookie("mine") != own {
            simulation.violated("\(order.number): the caller's cookie is lost")
        }
        if order.hasSecondCookie, request.cookie("second") != "\(order.number)" {
            simulation.violated("\(order.number): the caller's second line of cookies is lost")
        }
        if order.isUpgrade, request.value("upgrade") != "websocket" {
            simulation.violated("\(order.number): Upgrade is lost")
        }
        if habits.knowsCallers, let fault = CallerReport.fault(of: request, for: order) {
            simulation.violated("\(order.number): \(fault)")
        }
        let isAsked = !(habits.isPartlyOpen && request.path.hasPrefix(Self.open))
        if isAsked, (protection as? KeyProtection)?.isInField == true,
            request.trailers.contains(where: { $0.name.lowercased().hasSuffix("key") })
        {
            simulation.violated("\(order.number): a caller's key is among the trailers")
        }
    }
}
