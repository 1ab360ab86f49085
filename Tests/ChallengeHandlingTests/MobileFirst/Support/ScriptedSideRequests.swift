// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import Testing

/// What is expected of one side request, and what it gets.
struct ScriptedStep: Sendable {
    let method: HTTPRequest.Method
    let url: String
    let isExpected: @Sendable (SideRequest) -> Bool
    let reply: Result<SideResponse, SideRequestError>
    let location: SourceLocation

    init(
        _ method: HTTPRequest.Method, _ url: String, _ reply: Result<SideResponse, SideRequestError>,
        location: SourceLocation = #_sourceLocation,
        where isExpected: @escaping @Sendable (SideRequest) -> Bool = { _ in true }
    ) {
        self.method = method
        self.url = url
        self.isExpected = isExpected
        self.reply = reply
        self.location = location
    }

    /// The same request, with another reply.
    func replying(_ status: Int, _ fields: HTTPFields = [:], _ body: String = "") -> ScriptedStep {
        replying(.success(SideResponse(status: status, fields: fields, body: Array(body.utf8))))
    }

    /// The same request, with another reply or an error.
    func replying(_ reply: Result<SideResponse, SideRequestError>) -> ScriptedStep {
        ScriptedStep(method, url, reply, location: location, where: isExpected)
    }
}

/// A network that expects exactly these requests, in this order.
final class ScriptedSideRequests: SideRequests {
    private struct State {
        var steps: [ScriptedStep]
        var sent: [SideRequest] = []
    }

    private let state: Mutex<State>

    init(_ steps: [ScriptedStep]) {
        state = Mutex(State(steps: steps))
    }

    /// Everything that was sent.
    var sent: [SideRequest] { state.withLock { $0.sent } }
    /// What was expected and not sent.
    var missing: [ScriptedStep] { state.withLock { $0.steps } }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        // Gives other tasks the chance to interfere.
        await Task.yield()
        let step: ScriptedStep? = state.withLock { state in
            state.sent.append(request)
            return state.steps.isEmpty ? nil : state.steps.removeFirst()
        }
        let address = "\(request.url.origin)\(request.url.path)"
        guard let step else {
            Issue.record("unexpected request: \(request.method) \(address) \(request.body?.revealText() ?? "")")
            throw SideRequestError(.unreachable, reason: "the script is over")
        }
        #expect(request.method == step.method && address == step.url, sourceLocation: step.location)
        #expect(step.isExpected(request), "\(request.body?.revealText() ?? "")", sourceLocation: step.location)
        // RFC 6265 §5.4. What reads a field joins its lines, so that a step would not notice.
        #expect(request.fields[values: .cookie].count < 2, "Cookie in several lines", sourceLocation: step.location)
        return try step.reply.get()
    }
}

extension SideRequest {
    /// The body as JSON.
    var json: JSONValue? { body.flatMap { JSONValue(parsing: $0.revealBytes()) } }

    /// The first value of `name` in the form that the body is.
    func form(_ name: String) -> String? { body.flatMap { FormEncoding.value(of: name, in: $0.revealText()) } }

    /// The first value of `name` in the query.
    func query(_ name: String) -> String? { url.query.flatMap { FormEncoding.value(of: name, in: $0) } }
}
