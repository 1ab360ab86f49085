// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A MobileFirst 8.0 server as far as its clients see it: registration, preauthorize, authorization, token, logout,
/// heartbeat, and adapters protected by scopes.
///
/// It does no input or output and has no clock of its own: a request in, a response out. If the product's own behaviour
/// is not known, the error bodies of `az/v1/token` (RFC 6749 §5.2) and of an unknown scope (`INVALID_SCOPE`) are
/// invented.
package final class FakeMobileFirst: Sendable {
    /// The record of everything that happened.
    package let recorder: Recorder
    /// The planned faults.
    package let faults: FaultPlan
    /// The login page in front of the endpoints that `MobileFirstRules.guarded` names.
    package let gateway: FormLogin
    /// The path of the API, without a slash at the end: `/mfp/api`.
    package let basePath: String

    private let clock: FakeClock
    private let adapters: [AdapterResource]
    private let state: Mutex<MobileFirstState>

    /// Creates a server with those rules and resources.
    package init(
        rules: MobileFirstRules = MobileFirstRules(checks: [.pinCodeAttempts()]), adapters: [AdapterResource] = [],
        basePath: String = "/mfp/api", clock: FakeClock = .system, recorder: Recorder = Recorder(),
        faults: FaultPlan = FaultPlan()
    ) {
        self.recorder = recorder
        self.faults = faults
        self.gateway = FormLogin(contextPath: "", clock: clock, recorder: recorder, name: "gateway")
        self.basePath = basePath
        self.clock = clock
        self.adapters = adapters
        self.state = Mutex(MobileFirstState(rules: rules))
    }

    /// Changes the rules; issued tokens stay.
    package func configure(_ change: (inout MobileFirstRules) -> Void) {
        state.withLock { change(&$0.rules) }
    }

    /// Forgets every client and all their states: the next call of one gets `INVALID_CLIENT_ID`.
    package func forgetClients() {
        state.withLock { $0.clients.removeAll() }
    }

    /// Declares every token issued so far invalid.
    package func revokeTokens() {
        state.withLock { $0.tokens.removeAll() }
    }

    /// Puts a check of every client back to expired, as when its time had come.
    package func expire(check: String) {
        state.withLock { state in
            for id in state.clients.keys { state.clients[id]?.checks[check] = nil }
        }
    }

    /// The identifiers of the clients that are registered.
    package var clients: [String] { state.withLock { $0.clients.keys.sorted() } }

    /// Answers a request below `basePath` and notes it in the record.
    package func respond(to request: FakeRequest) -> FakeResponse {
        let path = apiPath(of: request)
        let endpoint = gateway.isSubmission(request) ? .form : Endpoint(apiPath: path)
        let response = faults.apply(at: endpoint) { unharmed(request, path: path, endpoint: endpoint) }
        recorder.note {
            $0.transcript.append(
                Record.Entry(method: request.method, path: request.path, status: response.status))
        }
        return response
    }

    /// Returns true if a request belongs to this server: to the API, or to the gateway's login.
    package func isResponsible(for request: FakeRequest) -> Bool {
        request.path.hasPrefix(basePath + "/") || gateway.isSubmission(request)
    }

    private func unharmed(_ request: FakeRequest, path: String, endpoint: Endpoint) -> FakeResponse {
        let isGuarded = state.withLock { $0.rules.guarded.contains(endpoint) }
        guard isGuarded || gateway.isSubmission(request) else {
            return work(request, path: path, endpoint: endpoint)
        }
        return gateway.respond(to: request) { restored in
            work(restored, path: apiPath(of: restored), endpoint: endpoint)
        }
    }

    private func work(_ request: FakeRequest, path: String, endpoint: Endpoint) -> FakeResponse {
        let offset = state.withLock { $0.rules.clockOffset }
        let call = MobileFirstCall(
            request: request, path: path, basePath: basePath, now: clock.now() + offset * 1000)
        let (response, notes, resource) = state.withLock { state in
            var notes = MobileFirstNotes()
            var resource: AdapterResource?
            let response: FakeResponse? =
                switch endpoint {
                case .registration: state.register(call, &notes)
                case .preauthorize: state.preauthorize(call, &notes)
                case .authorization: state.authorize(call, &notes)
                case .token: state.issueToken(call, &notes)
                case .logout: state.logout(call, &notes)
                case .heartbeat: state.heartbeat(call, &notes)
                case .resource: state.admit(call, adapters, &resource, &notes)
                case .basic, .digest, .form, .oauthResource, .oauthToken, .other:
                    FakeResponse.json(404, ["errorCode": "NOT_FOUND"])
                }
            return (response, notes, resource)
        }
        recorder.note { record in notes.changes.forEach { $0(&record) } }
        if let response { return response }
        guard let resource else { return FakeResponse(404) }
        return serve(resource, request)
    }

    /// Runs the resource itself, after all security checks.
    private func serve(_ resource: AdapterResource, _ request: FakeRequest) -> FakeResponse {
        let hit = Record.Hit(
            method: request.method, path: request.path, size: request.body.count, digest: sha256(request.body))
        let response = resource.handle(request)
        recorder.note { $0.hits.append(hit) }
        return response
    }

    private func apiPath(of request: FakeRequest) -> String {
        request.path.hasPrefix(basePath + "/") ? String(request.path.dropFirst(basePath.count + 1)) : request.path
    }
}

/// A resource of an adapter, protected by a scope.
package struct AdapterResource: Sendable {
    /// The methods it answers; empty is any.
    package var methods: [String]
    /// Its path below `adapters/`, as `bank/balance`.
    package var path: String
    /// The scope elements that a token must hold, separated by spaces; none is any registered client.
    package var scope: String
    /// The resource itself, reached past all security.
    package var handle: @Sendable (FakeRequest) -> FakeResponse

    /// Creates a resource of that path and scope.
    package init(
        _ path: String, scope: String = "", methods: [String] = [],
        handle: @escaping @Sendable (FakeRequest) -> FakeResponse
    ) {
        self.methods = methods
        self.path = path
        self.scope = scope
        self.handle = handle
    }
}

extension MobileFirstState {
    /// Applies the resource filter (RFC 6750 §3): passes a request on to a resource, or answers with the missing scope.
    mutating func admit(
        _ call: MobileFirstCall, _ adapters: [AdapterResource], _ admitted: inout AdapterResource?,
        _ notes: inout MobileFirstNotes
    ) -> FakeResponse? {
        let candidates = adapters.filter { "adapters/" + $0.path == call.path }
        guard !candidates.isEmpty else { return refusal("NOT_FOUND", "No such resource.", status: 404) }
        guard let resource = candidates.first(where: { $0.methods.isEmpty || $0.methods.contains(call.request.method) })
        else {
            return FakeResponse(405, fields: [("Allow", candidates.flatMap(\.methods).joined(separator: ", "))])
        }
        guard let text = call.request.authorization("Bearer") else {
            return FakeResponse(401, fields: [("WWW-Authenticate", "Bearer")])
        }
        guard var token = tokens[text], token.expires > call.now,
            rules.tokenUses.map({ token.uses < $0 }) ?? true
        else {
            return invalidTokenResponse
        }
        guard Set(resource.scope.split(separator: " ").map(String.init)).isSubset(of: token.scope) else {
            return insufficientScope(
                (["RegisteredClient"] + resource.scope.split(separator: " ").map(String.init)).joined(separator: " "))
        }
        token.uses += 1
        tokens[text] = token
        admitted = resource
        return nil
    }
}
