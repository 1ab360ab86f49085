// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPTypes
internal import Synchronization
internal import System

/// Steps and requests of logins with their times, printed at once or collected as JSON.
///
/// Steps are redacted by construction. Of a request only method, origin and path are recorded, never its query, fields or body.
final class LoginTranscript: LoginObserver {
    private struct State {
        var began = ContinuousClock.now
        var requests = 0
        var steps: [JSONValue] = []
        var logins: [JSONValue] = []
    }

    private let isPrinted: Bool
    private let state = Mutex(State())

    /// A transcript that is printed if `isPrinted`, and collected for `document` otherwise.
    init(isPrinted: Bool) { self.isPrinted = isPrinted }

    /// All logins that have ended, as JSON.
    var document: JSONValue { state.withLock { .array($0.logins) } }

    /// Number of requests since the last login began.
    var requests: Int { state.withLock(\.requests) }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        state.withLock { $0 = State(logins: $0.logins) }
        let credential = key.credential.isEmpty ? "" : " by \(key.credential)"
        if isPrinted { Process.print("\(key.challenge)\(credential) at \(key.origin)") }
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        record(["text": .string(step.text)], step.text)
    }

    /// Records the end of a side request: its status, or the error without one.
    func requestEnded(_ request: SideRequest, _ outcome: Result<Int, SideRequestError>, after duration: Duration) {
        state.withLock { $0.requests += 1 }
        let url = "\(request.url.origin)\(request.url.path)"
        let took = duration.milliseconds
        var object: [String: JSONValue] = [
            "method": .string(request.method.rawValue), "url": .string(url), "took_ms": .integer(took),
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
        record(object, "\(request.method.rawValue) \(url): \(text) (\(took) ms)")
    }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        let took = duration.milliseconds
        var object: [String: JSONValue] = [
            "challenge": .string(key.challenge), "credential": .string(key.credential),
            "origin": .string("\(key.origin)"), "took_ms": .integer(took),
        ]
        switch result {
        case .success(let session):
            let names = session.fields.map(\.name.rawName)
            let left = session.expiresAt.map { max(0, $0.saturatingSubtract(SystemClock.wallClock())) / 1000 }
            object["outcome"] = session.isVerified ? "succeeded" : "unverified"
            object["injects"] = .array(names.map { .string($0) })
            object["cookies"] = .bool(session.cookies != nil)
            object["expires_in"] = left.map { .integer($0) } ?? .null
            let use = session.summary
            let expiry = left.map { "; expires in \($0) s" } ?? ""
            let established = session.isVerified ? "session established" : "unverified session established"
            printLine("\(established) in \(took) ms: \(use)\(expiry)")
            if requests == 0 {
                printLine("nothing was sent: a request through the daemon shows if the server accepts it")
            }
        case .failure(let failure):
            object["outcome"] = .string(failure.code.rawValue)
            object["detail"] = .string(failure.detail)
            if !failure.cause.isEmpty { object["cause"] = .string(failure.cause) }
            printLine("\(failure.code.rawValue) after \(took) ms: \(failure.detail)")
            if !failure.cause.isEmpty { printLine("cause: \(failure.cause)") }
        }
        state.withLock { state in
            object["steps"] = .array(state.steps)
            state.logins.append(.object(object))
        }
    }

    private func record(_ object: [String: JSONValue], _ text: String) {
        guard !isPrinted else {
            printLine(text)
            return
        }
        state.withLock { state in
            var object = object
            object["at_ms"] = .integer((ContinuousClock.now - state.began).milliseconds)
            state.steps.append(.object(object))
        }
    }

    private func printLine(_ text: String) {
        guard isPrinted else { return }
        let stamp = "\((ContinuousClock.now - state.withLock { $0.began }).milliseconds)"
        Terminal.print("  \(String(repeating: " ", count: max(0, 6 - stamp.count)))\(stamp) ms  \(text)")
    }
}

/// Side requests whose outcomes are recorded in a transcript.
struct TranscribedSideRequests: SideRequests {
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
    /// The effect of the session on requests.
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
