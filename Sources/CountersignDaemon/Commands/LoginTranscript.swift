// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPTypes
internal import Synchronization

/// A login as it goes, step by step and request by request, with times: printed at once, or kept for one JSON document.
///
/// Steps are redacted by construction; of a request there is method, origin and path, never its query, fields or body.
final class LoginTranscript: LoginObserver {
    private struct State {
        var began = ContinuousClock.now
        var steps: [JSONValue] = []
        var logins: [JSONValue] = []
    }

    private let isPrinted: Bool
    private let state = Mutex(State())

    /// `isPrinted`: for people, at once; else for `document`.
    init(isPrinted: Bool) { self.isPrinted = isPrinted }

    /// All logins that are over.
    var document: JSONValue { state.withLock { .array($0.logins) } }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        state.withLock { $0 = State(logins: $0.logins) }
        let credential = key.credential.isEmpty ? "" : " by \(key.credential)"
        if isPrinted { Process.say("\(key.challenge)\(credential) at \(key.origin)") }
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        note(["text": .string(step.text)], step.text)
    }

    /// A request of the login is over, with that status or for that reason without one.
    func requestEnded(_ request: SideRequest, _ outcome: Result<Int, SideRequestError>, after duration: Duration) {
        let place = "\(request.url.origin)\(request.url.path)"
        let took = duration.wholeMilliseconds
        var object: [String: JSONValue] = [
            "method": .string(request.method.rawValue), "url": .string(place), "took_ms": .integer(took),
        ]
        let text: String
        switch outcome {
        case .success(let status):
            object["status"] = .integer(Int64(status))
            text = "\(status)"
        case .failure(let error):
            object["error"] = .string(error.reason)
            text = "no answer, \(error.reason)"
        }
        note(object, "\(request.method.rawValue) \(place): \(text) (\(took) ms)")
    }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        let took = duration.wholeMilliseconds
        var object: [String: JSONValue] = [
            "challenge": .string(key.challenge), "credential": .string(key.credential),
            "origin": .string("\(key.origin)"), "took_ms": .integer(took),
        ]
        switch result {
        case .success(let session):
            let names = session.fields.map(\.name.rawName)
            let left = session.expiresAt.map { max(0, $0.saturatingSubtract(Process.wallClock())) / 1000 }
            object["outcome"] = session.isProven ? "won" : "unproven"
            object["injects"] = .array(names.map { .string($0) })
            object["cookies"] = .bool(session.cookies != nil)
            object["expires_in"] = left.map { .integer($0) } ?? .null
            let use = session.summary
            let life = left.map { "; it ends in \($0) s" } ?? ""
            let made = session.isProven ? "session won" : "session made, which no server has judged yet,"
            say("\(made) in \(took) ms: \(use)\(life)")
        case .failure(let failure):
            object["outcome"] = .string(failure.code.rawValue)
            object["detail"] = .string(failure.detail)
            if !failure.cause.isEmpty { object["cause"] = .string(failure.cause) }
            say("\(failure.code.rawValue) after \(took) ms: \(failure.detail)")
            if !failure.cause.isEmpty { say("cause: \(failure.cause)") }
        }
        state.withLock { state in
            object["steps"] = .array(state.steps)
            state.logins.append(.object(object))
        }
    }

    private func note(_ object: [String: JSONValue], _ text: String) {
        guard !isPrinted else {
            say(text)
            return
        }
        state.withLock { state in
            var object = object
            object["at_ms"] = .integer((ContinuousClock.now - state.began).wholeMilliseconds)
            state.steps.append(.object(object))
        }
    }

    private func say(_ text: String) {
        guard isPrinted else { return }
        let stamp = "\((ContinuousClock.now - state.withLock { $0.began }).wholeMilliseconds)"
        Process.say("  \(String(repeating: " ", count: max(0, 6 - stamp.count)))\(stamp) ms  \(text)")
    }
}

/// Side requests that a transcript is told of.
struct NarratedSideRequests: SideRequests {
    let requests: any SideRequests
    let transcript: LoginTranscript

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        let began = ContinuousClock.now
        do throws(SideRequestError) {
            let response = try await requests.send(request)
            transcript.requestEnded(request, .success(response.status), after: ContinuousClock.now - began)
            return response
        } catch {
            transcript.requestEnded(request, .failure(error), after: ContinuousClock.now - began)
            throw error
        }
    }
}

extension Session {
    /// What it does to requests.
    fileprivate var summary: String {
        var parts: [String] = []
        if !fields.isEmpty { parts.append("it injects \(fields.map(\.name.rawName).joined(separator: ", "))") }
        if let signer {
            parts.append("it makes \(signer.names.map(\.rawName).joined(separator: ", ")) for each request")
        }
        if cookies != nil { parts.append("it sends cookies") }
        if connection != nil { parts.append("it authenticates connections") }
        return parts.joined(separator: ", ")
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 { Int64(self / .milliseconds(1)) }
}
