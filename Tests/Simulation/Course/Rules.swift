// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// The judge of rules 7 and 9, and of the local replies: which answers a caller may get, and when.
struct Rules {
    private unowned let simulation: Simulation
    /// True once everything has to be answered.
    var expectsSuccess = false
    var restarts = 0
    private var sideRequests: [String: Int] = [:]
    private var ofRequests: Set<String> = []
    /// The time at which a body last came that cannot be read, in ms since 1970.
    var lastBrokenBody: Int64 = 0
    /// The answers by status, or by code.
    private(set) var answers: [String: Int] = [:]
    /// The pause in ms after a check of the proven address without a result.
    private static let pauseOfDoubt: Int64 = 5_000
    /// The longest time in ms for which a session is in doubt while the check of the proven address gets no answer,
    /// with the pause after it.
    private static let longestDoubt: Int64 = 15_000
    /// The time in ms for which a new session is not renewed because of a refusal.
    private static let renewalPause: Int64 = 31_000
    /// The answers of servers in trouble.
    private static let faults: Set<Int> = [429, 500, 503]
    /// The longest time in ms for which callers are answered with a login's failure.
    private static let longestPause: Int64 = 60_000

    init(_ simulation: Simulation) { self.simulation = simulation }

    // MARK: Latches

    /// Notes that a login has begun.
    mutating func loginBegan(_ challenge: String, isOfRequest: Bool) {
        simulation.account(named: challenge)?.loginBegan()
        if isOfRequest { ofRequests.insert(challenge) } else { ofRequests.remove(challenge) }
        sideRequests[challenge] = 0
    }

    /// Returns true if the last login began because of a caller's request.
    func isOfRequest(_ challenge: String) -> Bool { ofRequests.contains(challenge) }

    /// Notes a request of a login, or of the confirmation of its session.
    mutating func sideRequest(of challenge: String) {
        sideRequests[challenge, default: 0] += 1
        if sideRequests[challenge, default: 0] > Self.mostSideRequests {
            simulation.violated("a login of \(challenge) has no end")
        }
    }

    /// The most requests between the beginnings of two logins: far more than any login has.
    private static let mostSideRequests = 400

    /// Notes that a latch has closed for the value with that digest.
    mutating func latchClosed(_ key: LatchKey, _ digest: [UInt8], _ latch: Latch) {
        let challenge = key.challenge
        guard let server = simulation.servers.first(where: { $0.protection.challengeName == challenge }) else { return }
        if key.credential.isEmpty { simulation.violated("rule 3: a latch of \(challenge) that no value opens") }
        let protection = server.protection
        let account = protection.account
        let value = account.values.last {
            simulation.disk.digest(of: simulation.credential(named: account.name, $0, of: server)) == digest
        }
        defer { if let value { account.rejected(value, at: latch.closedAt) } }
        if protection.isScheme, !simulation.setting.provesAt, simulation.logins.isAdopted(challenge), account.isRight,
            value == account.right, !account.wasSentUnasked
        {
            simulation.violated("rule 3: the first refusal of a session that was taken over latches \(challenge)")
        }
        guard !simulation.logins.checkForgotten(challenge), let value else { return }
        if !account.isRefused(value) {
            simulation.violated("rule 3: a value of \(challenge) is latched, which its server has not refused")
        }
        guard value == account.right, account.isAccepted(value), latch.reason != .locked else { return }
        // An address without a challenge accepts any value: only a challenge or `prove-at` shows that a value is good.
        // A refusal for lack of scope is a refusal of the secret to a process that has lost its memory of the
        // acceptance. An address that asks for a token was the last to accept the value, and refuses every caller.
        if protection is DoubleProtection, simulation.weather.hasRefusals { return }
        if protection is TokenProtection, restarts > 0 || simulation.setting.nodes > 1 { return }
        let isKnown =
            !protection.isScheme || simulation.setting.provesAt
            || !account.wasSentUnasked && account.isKnownAsGood(value) && restarts == 0
        if isKnown { simulation.violated("rule 3: the right value of \(challenge), which was accepted, is latched") }
    }

    // MARK: Answers

    /// Judges the answer to a request of a program; `nil` if the connection ended without one.
    mutating func judge(_ answer: CallerAnswer?, to order: Order) {
        guard let answer else {
            count("no answer")
            if simulation.mayRefuse || simulation.setting.isUnix { return }
            return simulation.violated("\(order.number): no answer to \(order.method)")
        }
        if let code = answer.code ?? answer.codeOfHead {
            count(code)
            return judge(code, of: answer, to: order)
        }
        count("\(answer.status)")
        let executions = order.server.executed[order.number, default: 0]
        if let sent = order.server.sent[order.number], answer.status == sent.status,
            answer.value("x-answer") == "\(order.number)"
        {
            if executions == 0, !order.isGuests { simulation.violated("\(order.number): an answer without a request") }
            simulation.carried.ages.isAnswered(order)
            if !answer.isWhole {
                if !simulation.weather.hasFaults, restarts == 0 {
                    simulation.violated("\(order.number): a part of an answer")
                }
                return
            }
            if let fault = order.server.protection.fault(in: answer, to: order) {
                simulation.violated("rule 9: \(order.number): \(fault)")
            }
            if order.method != "HEAD", answer.body != sent.body {
                simulation.violated("\(order.number): another's answer")
            }
            if answer.status == 201, answer.value("location")?.hasSuffix(":8080/made/\(order.number)") != true,
                answer.value("location") != "/made/\(order.number)"
            {
                simulation.violated("\(order.number): Location is \(answer.value("location") ?? "lost")")
            }
            if sent.fields.contains(where: { $0.name == "Set-Cookie" }),
                answer.value("set-cookie")?.hasPrefix("mine=again\(order.number); Path=/") != true
            {
                simulation.violated("\(order.number): Set-Cookie is \(answer.value("set-cookie") ?? "lost")")
            }
            return
        }
        let body = String(decoding: answer.body, as: UTF8.self)
        let protection = order.server.protection
        if answer.status == 408, order.server.timedOut.contains(order.number) { return }
        if protection.isConflict(answer) { return }
        // The verdict was in the end of the connection, for a request that must not be sent again (RFC 9110 §9.2.2).
        if answer.status == 408, meetsRestEnd(order), !order.isIdempotent || !order.body.isEmpty || order.isChunked {
            simulation.sessions.isLost(protection.challengeName)
            // A request that may be repeated was, after a lost connection.
            if executions > 0, !order.isIdempotent || !simulation.weather.hasFaults {
                simulation.violated("\(order.number): carried out, and its caller is told 408")
            }
            return
        }
        // Some challenges are recognised by their text, which HEAD does not bring (rule 12).
        if order.method == "HEAD", protection.needsBody || order.isForbidden && !protection.isScheme { return }
        if answer.value("x-demand") != nil || protection.isDemand(answer.status, body) {
            if order.isForbidden || protection.isRefused(order) {
                if !order.isFickle, simulation.carried.isWithoutSession(order) {
                    simulation.violated("rule 4: \(order.number) gets a refusal that was not about its session")
                }
                return
            }
            if answer.isWhole, simulation.carried.ages.isOutdated(order) {
                simulation.violated("rule 5: \(order.number) gets the refusal of a session that has ended")
            }
            let isInDoubt = order.server.resources.isInDoubt(order, since: order.began - SharedResources.memory)
            // A part of an answer cannot be recognised, and a login whose look has failed finds nothing.
            let hasFailed = simulation.weather.hasFaults && simulation.lastFault >= order.began
            if answer.isWhole, !isInDoubt, !hasFailed, !protection.isScheme, simulation.carried.isEmpty(order) {
                simulation.violated("rule 7: \(order.number) gets what asks a request without any session for a login")
            }
            if answer.isWhole, !isInDoubt, isUnlooked(order) {
                simulation.violated("rule 5: \(order.number) gets a refusal although only a renewal failed")
            }
            // A session in doubt stays while the check of the proven address fails, and 5 s after that (rule 4).
            let doubt = max(Self.longestDoubt, Self.pauseOfDoubt + simulation.setting.loginLimit)
            let lastFault = max(simulation.lastFault, protection.account.lastFailedLook)
            let mayFail = simulation.weather.hasFaults || simulation.weather.troublesLooks
            if mayFail, lastFault >= order.began - doubt { return }
            // A session that was just established and is refused: that is the resource's answer (rule 4).
            let account = protection.account
            let challenge = protection.challengeName
            if max(account.lastEnd, account.lastChange, account.lastDrop) >= order.began
                || simulation.logins.wasInVain(challenge, since: order.began)
            {
                return
            }
            // A new token is not renewed because of a refusal, unless an address that accepted it shows its end (rule 4).
            let isNew = simulation.logins.wasEstablished(challenge, since: order.began - Self.renewalPause)
            if !protection.isScheme, !protection.needsBody, isNew { return }
            // A session in doubt is not known before the end of a login that is under way.
            if simulation.logins.wasLate(challenge, since: order.began) { return }
            // A login that meets a used one-time password shows nothing of the session in doubt.
            if usesCodes(order), simulation.logins.hasFailed(challenge, since: order.began) { return }
            let isPatient = simulation.now - order.began >= simulation.setting.loginLimit
            if isPatient, simulation.weather.hasFaults || simulation.weather.hasDiskFaults { return }
            // Then the resource counts as one that refuses, and its next requests are not examined.
            if isInDoubt || simulation.carried.ages.isKnownToRefuse(order) { return }
            // A wrong password accepted by an address without a challenge: then the refusal may be the resource's.
            if isUnverifiable(order) { return }
            return simulation.violated(
                "rule 7: \(order.method) \(order.number) gets the login page or challenge (\(answer.status))")
        }
        if protection.isRefusal(answer.status) {
            if order.isForbidden || protection.account.wasEverWrong { return }
        }
        if !answer.isWhole, simulation.weather.hasFaults { return }
        if Self.faults.contains(answer.status), simulation.weather.hasFaults, !expectsSuccess { return }
        simulation.violated("\(order.number): the answer \(answer.status) \(body.prefix(80))")
    }

    /// Returns true if a login failed while an order was under way and the session to be replaced was not examined.
    private func isUnlooked(_ order: Order) -> Bool {
        let (protection, logins) = (order.server.protection, simulation.logins)
        let challenge = protection.challengeName
        guard !protection.isScheme, protection.hasOneSession, logins.hasFailed(challenge, since: order.began) else {
            return false
        }
        return !simulation.carried.isEmpty(order) && simulation.carried.hasSession(at: order.server)
            && !logins.wasEstablished(challenge, since: order.began)
            && !logins.hasLooked(challenge, since: order.began - Self.pauseOfDoubt)
            && simulation.now - order.began < simulation.setting.loginLimit
    }

    /// Returns true if no address can show whether a value is good that another has refused.
    ///
    /// A process leaves it to the next login if it has the session of a former one, and does not know that its value was accepted.
    private func isUnverifiable(_ order: Order) -> Bool {
        guard order.server.protection.isScheme else { return false }
        let weather = simulation.weather
        return restarts > 0 && weather.changesCredentials
            || !simulation.setting.provesAt && (weather.hasRefusals || weather.changesCredentials || restarts > 0)
    }

    /// Returns true if a body that broke off may have carried a trial of the credential, whose outcome at the server is
    /// unknown.
    private func meetsBrokenTrial(_ order: Order) -> Bool {
        order.server.protection.account.ridesOnRequests && order.server === simulation.servers[0]
            && order.began - lastBrokenBody < 70_000
    }

    /// Returns true if the server may have ended the connection at rest that carried the request.
    private func meetsRestEnd(_ order: Order) -> Bool { order.server.lastRestEnd >= order.began - 5_000 }

    /// Returns true if the loss of an idle connection may be reported to the caller: the request must not, or cannot,
    /// be sent again.
    private func isLostAtRest(_ order: Order, _ code: String) -> Bool {
        let ridesOnRequests = order.server.protection.account.ridesOnRequests
        switch code {
        case "upstream-unreachable":
            let isOftenMet = order.server.restEnds - order.restEndsBefore > 4
            return meetsRestEnd(order)
                && (!order.isIdempotent || order.body.count > 4_096 || ridesOnRequests || isOftenMet)
        // The outcome of the credential on that connection is unknown.
        case "login-failed": return ridesOnRequests && order.began - order.server.lastRestEnd < 70_000
        default: return false
        }
    }

    /// Returns true if a login needs a one-time password, which changes every half minute.
    private func usesCodes(_ order: Order) -> Bool { order.server.protection.usesCodes }

    /// Returns true if the server has forgotten a session so lately that a login may have met that.
    private func isForgotten(_ order: Order) -> Bool {
        order.began - order.server.protection.account.lastEnd < 70_000
            || order.server.protection.account.isDisturbed(since: order.began)
    }

    /// Returns true if a 403, or a refusal without another address, may have met a value that was accepted before: it is sent once
    /// more, after a minute (rule 3).
    private func isTriedAgain(_ order: Order) -> Bool {
        (order.server.protection is ApplicationForm || order.server.protection.isScheme)
            && order.began - order.server.protection.account.lastRefusal < 70_000
    }

    /// Returns true if a latch of the challenge of an order may have been closed meanwhile, or since its login began.
    private func mayBeLatched(_ order: Order) -> Bool {
        let account = order.server.protection.account
        let name = order.server.protection.challengeName
        // A request that joins a login which has met a latch gets the latch's error, even if the latch is open by now.
        let latched = simulation.logins.beginOfLatched(name, since: order.began) ?? order.began
        let began = min(order.began, simulation.logins.lastBegin(of: name), latched)
        // A latch that closes while the disk is busy is noted later.
        return simulation.weather.hasDiskFaults
            || simulation.disks.contains { $0.pending > 0 || $0.wasLatched(account, since: began) }
            || simulation.processes.contains { $0.sharesLatch(account, since: began) }
    }

    private func judge(_ code: String, of answer: CallerAnswer, to order: Order) {
        if code == "login-failed", answer.isHeldBack { return }
        let protection = order.server.protection
        let isRefused = order.isForbidden || protection.isRefused(order)
        guard !expectsSuccess || !protection.account.isRight || isRefused else {
            if code == "body-not-replayable" && order.body.count > 4_096 { return }
            // The code of this half minute may be used up.
            let isHopeless = usesCodes(order) || protection.isBeyondReach(order)
            if code == "login-failed", isHopeless || protection.account.isDisturbed(since: order.began) { return }
            // A forbidden address has shown a good value as a bad one.
            if code.hasPrefix("login-"), isUnverifiable(order) { return }
            // Another node has seen it accepted, and this one that it was refused for more scope.
            if code.hasPrefix("login-"), simulation.setting.nodes > 1,
                protection.account.isRefused(protection.account.right)
            {
                return
            }
            let body = String(decoding: answer.body, as: UTF8.self)
            return simulation.violated("\(order.number): \(code) although all is well: \(body)")
        }
        let account = protection.account
        let weather = simulation.weather
        if code.hasPrefix("login-"), protection.serves(order) {
            simulation.violated("rule 8: \(order.number): \(code), although a session serves")
        }
        if protection.isStrange(order), order.isRead, !simulation.setting.isAtStart,
            code.hasPrefix("login-") || code == "no-credential"
        {
            simulation.violated("rule 7: \(order.number): \(code), although its server asks for what nobody can answer")
        }
        if code == "login-failed", simulation.carried.isEmpty(order), !protection.isBeyondReach(order),
            String(decoding: answer.body, as: UTF8.self).contains("No login page was found")
        {
            simulation.violated("rule 7: \(order.number) met the login page, and is told that there is none")
        }
        let isAllowed =
            switch code {
            case "upstream-unreachable", "upstream-protocol", "upstream-timeout", "login-failed", "login-timeout":
                weather.hasFaults || isLostAtRest(order, code)
                    || code == "login-timeout" && weather.hasDiskFaults
                    || code == "login-failed"
                        && (protection is DigestProtection || weather.hasDiskFaults || weather.losesCallers
                            || isUnverifiable(order) || isForgotten(order) || isTriedAgain(order) || usesCodes(order)
                            || meetsBrokenTrial(order) || protection.isBeyondReach(order)
                            || account.hasHeldBack(since: order.began))
            case "account-locked": protection.locksAccounts && account.wasEverWrong
            case "login-rejected" where protection.locksAccounts: false
            case "login-latched" where !mayBeLatched(order): false
            case "login-rejected", "login-latched", "attempts-kept":
                account.wasEverWrong || account.isMistaken || (order.isForbidden && !order.wasAccepted)
                    || weather.hasRefusals
            case "no-credential": account.wasEverWrong
            case "draining", "overloaded": simulation.mayRefuse
            case "body-not-replayable": order.body.count > 4_096
            default: false
            }
        let limit = simulation.setting.loginLimit
        if code == "login-timeout", !protection.isScheme, simulation.now - order.began < limit,
            !simulation.logins.wasLate(protection.challengeName, since: order.began - Self.longestPause)
        {
            simulation.violated("\(order.number): the login timed out after \(simulation.now - order.began) ms")
        }
        if !isAllowed {
            simulation.violated(
                "\(order.number): \(code) (\(answer.status)) without a cause: \(String(decoding: answer.body, as: UTF8.self))"
            )
        }
        let executions = order.server.executed[order.number, default: 0]
        // A request that may be repeated was, after a lost connection, and then its session was gone.
        if order.isIdempotent, weather.hasFaults { return }
        if executions > 0,
            ["login-rejected", "login-latched", "attempts-kept", "no-credential", "body-not-replayable"].contains(code)
        {
            simulation.violated("rule 2: \(order.number) was carried out, and its caller is told \(code)")
        }
    }

    /// Judges the answer to a request that the proxy must refuse by itself.
    mutating func judge(_ answer: CallerAnswer?, to trespass: Trespass) {
        guard let answer else {
            count("no refusal")
            if simulation.mayRefuse { return }
            return simulation.violated("no answer to \(trespass.name)")
        }
        if ["draining", "overloaded"].contains(answer.code ?? answer.codeOfHead) { return }
        count("refused")
        if trespass.endsConnection, answer.code == "bad-request", answer.value("connection")?.lowercased() != "close" {
            simulation.violated("\(trespass.name): the connection stays open")
        }
        // A fault in a body is met after the login.
        if trespass.method == "POST", let code = answer.code, code != "bad-request" {
            return
        }
        // Or after the server's own answer to the beginning of the body, which may be the resource's (rule 4).
        let server = simulation.servers[0]
        let body = String(decoding: answer.body, as: UTF8.self)
        let protection = server.protection
        if trespass.method == "POST", server.habits.answersEarly,
            protection.isDemand(answer.status, body) || protection.isRefusal(answer.status)
        {
            return
        }
        if simulation.weather.hasFaults, Self.faults.contains(answer.status) { return }
        if !trespass.statuses.contains(answer.status) {
            simulation.violated(
                "\(trespass.name): \(answer.status) \(String(decoding: answer.body, as: UTF8.self).prefix(200))")
        }
    }

    /// Counts the answer to a guest.
    mutating func visited(_ status: Int) { count(status >= 400 ? "refused" : "visits") }

    private mutating func count(_ what: String) { answers[what, default: 0] += 1 }
}

extension CallerAnswer {
    /// The code in `Proxy-Status` of a local reply without a body (HEAD).
    var codeOfHead: String? {
        guard value("content-type")?.hasPrefix("application/problem+json") == true else { return nil }
        return value("proxy-status")?.components(between: "details=\"", and: "\"") ?? "local"
    }
}
