// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import HTTPTypes
import HTTPWire
import Testing

@testable import ChallengeClient

@Suite("Challenges and sessions of an exchange with a fake upstream")
struct ExchangeSessionTests {
    private let login = HeldLogin()
    private let corp = NamedDetector(name: "corp")

    @Test("a challenge is read to its end, the login waited for, and the request sent again with its session")
    func challenged() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.get()
        rig.stream?.answer("401 Unauthorized", "X-Login: corp", "Content-Length: 4", body: "12")
        rig.settle()
        #expect(login.count == 0)
        rig.stream?.send("34")
        rig.settle()
        #expect(login.count == 1)
        #expect(rig.sendings == 1)
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.sendings == 2)
        #expect(rig.stream?.head == "GET / HTTP/1.1\r\nHost: bank\r\nX-corp: corp\r\n\r\n")
        rig.stream?.answerWhole("200 OK", body: "in")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body in", "ended"])
        #expect(rig.exchange.rounds == 1)
        #expect(rig.exchange.awaitedLogin == "corp")
    }

    @Test("a session that is dropped between its login and the request is established once more")
    func droppedMeanwhile() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        let (key, gate) = (rig.key("corp"), rig.services.gate)
        let outcomes = gate.finish(key, with: .success(.named("corp")))
        #expect(gate.change { $0.sessions.drop { $0 == key } } == [key])
        rig.services.notify(outcomes)
        rig.settle()
        #expect(rig.stream?.head == "GET / HTTP/1.1\r\nHost: bank\r\n\r\n")
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        #expect(login.count == 2)
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.stream?.head.contains("X-corp: corp") == true)
        rig.stream?.answerWhole("200 OK", body: "in")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body in", "ended"])
    }

    @Test("an unsafe request waits for another session if an operator drops the one established for it")
    func droppedBeforeEffects() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.post("12")
        let (key, gate) = (rig.key("corp"), rig.services.gate)
        let outcomes = gate.finish(key, with: .success(.named("corp")))
        #expect(gate.change { $0.sessions.drop { $0 == key } } == [key])
        rig.services.notify(outcomes)
        rig.settle()
        #expect(login.count == 2 && rig.caller.error == nil && rig.sendings == 0)
        login.end(.success(.named("new")))
        rig.settle()
        #expect(rig.stream?.head.contains("X-new: new") == true && rig.stream?.body == "12")
    }

    @Test("a session that expires between its login and the request is not established once more")
    func expiredMeanwhile() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        var session = Session.named("corp")
        session.expiresAt = ExchangeRig.now
        login.end(.success(session))
        rig.settle()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        #expect(login.count == 1)
        #expect(rig.caller.takeEvents().first == "head 401")
    }

    @Test("a challenge to a session that was replaced meanwhile asks for the new one, even right after a login")
    func replacedMeanwhile() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.sendings == 2)
        let (key, gate) = (rig.key("corp"), rig.services.gate)
        #expect(gate.change { $0.sessions.beginRenewal(key, now: ExchangeRig.now + 60_000) })
        _ = gate.finish(key, with: .success(.named("new")))
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        #expect(login.count == 1)
        #expect(rig.sendings == 3)
        #expect(rig.stream?.head.contains("X-new: new") == true)
        rig.stream?.answerWhole("200 OK", body: "in")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body in", "ended"])
    }

    @Test("a session that ends while a connection is made is not sent on it: the request goes without")
    func endedWhileConnecting() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        let (key, gate) = (rig.key("corp"), rig.services.gate)
        _ = gate.adopt(key, .named("corp"), establishedAt: ExchangeRig.now)
        rig.get()
        #expect(rig.stream?.head.contains("X-corp: corp") == true)
        #expect(rig.stream?.transfer.meetsEndedSession() == false)
        gate.change { _ = $0.sessions.drop { $0 == key } }
        #expect(rig.stream?.transfer.meetsEndedSession() == true)
        rig.stream?.end(.abortedByCallback)
        rig.settle()
        #expect(rig.sendings == 2)
        #expect(rig.stream?.head.contains("X-corp") == false)
    }

    @Test("a request that has effects waits for another session where its own ends while a connection is made")
    func endedBeforeEffects() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        let (key, gate) = (rig.key("corp"), rig.services.gate)
        _ = gate.adopt(key, .named("corp"), establishedAt: ExchangeRig.now)
        rig.post("12")
        #expect(rig.sendings == 1)
        gate.change { _ = $0.sessions.drop { $0 == key } }
        #expect(rig.stream?.transfer.meetsEndedSession() == true)
        rig.stream?.end(.abortedByCallback)
        rig.settle()
        #expect(rig.sendings == 1)
        #expect(login.count == 1)
        login.end(.success(.named("new")))
        rig.settle()
        #expect(rig.sendings == 2)
        #expect(rig.stream?.head.contains("X-new: new") == true)
        #expect(rig.stream?.body == "12")
    }

    @Test("a request that has effects waits for its session before any of it is sent")
    func loginFirst() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.post("12")
        #expect(rig.sendings == 0)
        #expect(login.count == 1)
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.sendings == 1)
        #expect(rig.stream?.body == "12")
    }

    @Test("a failed login is reported with its reason, and the request is not sent again")
    func loginFails() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        let failure = LoginFailure(.rejected, challenge: "corp", detail: "The password was rejected.")
        login.end(.failure(failure))
        rig.settle()
        #expect(rig.caller.error == ExchangeError(failure))
        #expect(rig.sendings == 1)
    }

    @Test("a login that hangs ends at timeouts.login, for the exchange that waits as for itself")
    func loginHangs() throws {
        let rig = try ExchangeRig(
            logins: [login.authenticator("corp", detector: corp)], timeouts: .init(login: .seconds(30)))
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.pass(.milliseconds(29_999))
        #expect(rig.caller.events.isEmpty)
        rig.pass(.milliseconds(1))
        let code: ExchangeError.Kind? = rig.caller.error?.kind
        switch code {
        case .loginTimeout: break
        case .login(let failure): #expect(failure.code == .timedOut)
        default: Issue.record("\(String(describing: code))")
        }
    }

    @Test("a challenge for a body that is gone ends the exchange, and the login runs for the next sending")
    func gone() throws {
        let rig = try ExchangeRig(
            logins: [login.authenticator("corp", detector: corp)], replay: ReplayTiers(memory: 4))
        // A session is held, so the body is not held back.
        _ = rig.services.gate.adopt(rig.key("corp"), .named("corp"), establishedAt: ExchangeRig.now)
        rig.post("", framing: .length(200_000), isComplete: false)
        rig.send(String(repeating: "x", count: 100_000))
        rig.settle()
        rig.stream?.answer("100 Continue")
        rig.stream?.takeBody()
        rig.settle()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
        #expect(rig.caller.error == .bodyNotReplayable)
        #expect(login.count == 1)
        #expect(rig.sendings == 1)
    }

    @Test("a request that waits for a login before it is sent again has all of its body, which went on meanwhile")
    func goesOn() throws {
        let rig = try ExchangeRig(
            logins: [login.authenticator("corp", detector: corp, isAhead: true)], replay: ReplayTiers(memory: 16))
        let (gate, key) = (rig.services.gate, rig.key("corp"))
        _ = gate.adopt(key, .named("old"), establishedAt: ExchangeRig.now)
        rig.streams.prepare = { $0.isStale = true }
        rig.post("12345678", framing: .chunked, method: .put, isComplete: false)
        rig.stream?.takeBody()
        gate.change { _ = $0.sessions.drop { $0 == key } }
        rig.stream?.end(.gotNothing)
        rig.settle()
        #expect(login.count == 1 && rig.sendings == 1)
        rig.send("and more than is held")
        rig.exchange.receiveBodyEnd()
        login.end(.success(.named("new")))
        rig.settle()
        rig.stream?.takeBody()
        #expect(rig.sendings == 2 && rig.stream?.body == "12345678and more than is held")
    }

    @Test("libcurl may send a request on another connection only if that does no harm and its body is held")
    func mayResend() throws {
        let cases: [(RequestMethod, memory: Int, Bool)] = [(.put, 64, true), (.post, 64, false), (.put, 0, false)]
        for (method, memory, isAllowed) in cases {
            // A body is kept if a challenge may come.
            let rig = try ExchangeRig(
                logins: [login.authenticator("corp", detector: corp)], replay: ReplayTiers(memory: memory))
            _ = rig.services.gate.adopt(rig.key("corp"), .named("corp"), establishedAt: ExchangeRig.now)
            rig.post("12", method: method)
            if rig.stream?.body.isEmpty == true { rig.stream?.takeBody() }
            #expect(rig.stream?.body == "12")
            #expect(rig.exchange.mayResend() == isAllowed, "\(method), \(memory)")
        }
    }

    @Test("a challenge on a session that can be confirmed is held for that, and passes where the session works")
    func confirmed() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp, confirms: true)])
        _ = rig.services.gate.adopt(rig.key("corp"), .named("corp"), establishedAt: ExchangeRig.now)
        rig.get("/secret")
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp", body: "no")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 401", "body no", "ended"])
        #expect(login.count == 0)
        #expect(rig.services.gate.held(rig.key("corp")) != nil)
    }

    @Test("a session that its confirmation finds over leads to a login, and the request is sent again once")
    func over() throws {
        let login = HeldLogin(confirmation: .over)
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp, confirms: true)])
        _ = rig.services.gate.adopt(rig.key("corp"), .named("old"), establishedAt: ExchangeRig.now)
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp", body: "no")
        rig.settle()
        #expect(login.count == 1)
        login.end(.success(.named("new")))
        rig.settle()
        #expect(rig.sendings == 2)
        rig.stream?.answerWhole("200 OK")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "ended"])
    }

    @Test("a failed renewal does not decide on a refusal of the session that it was to replace")
    func failedRenewal() throws {
        let login = HeldLogin(confirmation: .over)
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp, confirms: true)])
        let (gate, key) = (rig.services.gate, rig.key("corp"))
        _ = gate.adopt(key, .named("old"), establishedAt: ExchangeRig.now)
        #expect(gate.change { $0.sessions.beginRenewal(key, now: ExchangeRig.now) })
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp", body: "no")
        rig.settle()
        #expect(rig.caller.takeEvents() == [])
        let failure = LoginFailure(.failed, challenge: "corp", detail: "no answer")
        rig.services.notify(gate.finish(key, with: .failure(failure)))
        rig.settle()
        #expect(gate.held(key) == nil)
        #expect(rig.caller.takeEvents().contains { $0.hasPrefix("head") } == false)
    }

    @Test(
        "a confirmation that began before the refusal decides on it only if it was for the same resource",
        arguments: [nil, "/", "/other"])
    func late(path: String?) throws {
        let login = HeldLogin(confirmation: .over)
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp, confirms: true)])
        let (gate, key) = (rig.services.gate, rig.key("corp"))
        _ = gate.adopt(key, .named("old"), establishedAt: ExchangeRig.now)
        let held = try #require(gate.held(key))
        let (generation, other) = (held.generation, rig.runtime.nextTicket())
        #expect(
            gate.change { $0.sessions.requestConfirmation(of: key, generation: generation, waiter: other, now: 0) }
                == .confirm(held))
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp", body: "no")
        rig.settle()
        #expect(login.count == 0)
        rig.services.notify(
            gate.change {
                $0.confirmSession(
                    key, generation: generation, .stillGood,
                    after: path.map {
                        let resource = ResourceKey(resource: "\(RequestMethod.get.rawValue) \($0)", session: key)
                        return RefusedUse(key: resource, generation: generation)
                    }, now: ExchangeRig.now)
            })
        rig.settle()
        let isDecided = path == "/"
        #expect(login.count == (isDecided ? 0 : 1))
        #expect(rig.caller.takeEvents() == (isDecided ? ["head 401", "body no", "ended"] : []))
    }

    @Test("an auth request is answered with the fields of its sessions, and nothing is sent")
    func authRequest() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.begin(ExchangeRequest(method: .get, framing: .none, isAuthRequest: true))
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.caller.takeEvents().last == "ended")
        #expect(rig.sendings == 0)
    }

    @Test("a page that trickles in is examined after two seconds with the bytes received")
    func trickle() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("page", detector: WordDetector())])
        rig.get()
        rig.stream?.answer("200 OK", "Content-Type: text/html", "Content-Length: 99", body: "<p>log")
        rig.pass(.milliseconds(1_999))
        #expect(rig.caller.events.isEmpty)
        rig.pass(.milliseconds(1))
        #expect(rig.caller.takeEvents() == ["head 200", "body <p>log"])
    }

    @Test("a login page is not delivered to the caller")
    func page() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("page", detector: WordDetector())])
        rig.get()
        rig.stream?.answerWhole("200 OK", "Content-Type: text/html", body: "<p>log in")
        rig.settle()
        #expect(login.count == 1)
        login.end(.success(.named("page")))
        rig.settle()
        rig.stream?.answerWhole("200 OK", "Content-Type: text/html", body: "<p>welcome")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body <p>welcome", "ended"])
    }
}

/// Detector that finds a login page by two words.
private struct WordDetector: ChallengeDetector {
    let kind = "page"
    var filter: ResponseFilter { .everything }

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard let body = response.body else { return .needsBody }
        return String(decoding: body, as: UTF8.self).contains("log in") ? .challenged() : .pass
    }
}

extension ExchangeRig {
    func key(_ name: String) -> SessionKey {
        SessionKey(origin: Origin(scheme: .http, host: "127.0.0.1", port: 1), challenge: name, credential: name)
    }
}
