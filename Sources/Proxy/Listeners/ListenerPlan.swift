// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
package import HTTPWire

/// The rules and destinations of a listener. Immutable; a reload makes new plans.
///
/// An object, because every request retains it, and would retain each part of a value.
package final class ListenerPlan: Sendable {
    /// The purpose of a listener.
    package enum Service: Sendable {
        /// Auth requests of another proxy are answered; no request is forwarded.
        case authRequests
        /// Local answers: the admin listener.
        case local(any LocalService)
        /// Requests are forwarded.
        case proxy
    }

    /// The address as in the configuration, for logs and status.
    package let name: String
    /// The purpose of the listener.
    package let service: Service
    /// The routes.
    package let router: Router
    /// The accepted host names.
    package let hosts: HostPolicy
    /// The allowed uids; `nil` for all.
    package let users: Set<UInt32>?
    /// Tokens, one of which each request must carry; `nil` if callers need no token.
    package let tokens: CallerTokenRule?
    /// The limit of connected callers; `nil` if only `limits.callers` applies.
    package let callers: Int?
    /// True if decisions about requests need the caller's uid.
    package let asksForUser: Bool
    /// The only uids from which any request is accepted: those of the listener, or of all its routes if there is no fallback;
    /// `nil` for all.
    let admittedUsers: Set<UInt32>?
    /// The browsers' requests that are served.
    package let browsers: BrowserRule
    /// Limits on request heads.
    package let headLimits: HeadLimits
    /// The path for load balancers' health checks; `nil` without one. Callers of all users and machines may connect for it.
    let health: HealthPath?
    /// True if the proxy may run without the listener, because it was not configured explicitly.
    package let isOptional: Bool

    /// True if the listener answers auth requests of another proxy.
    let answersAuthRequests: Bool

    /// True if the listener answers by itself. Its callers do not count in `limits.callers`.
    var isLocal: Bool {
        if case .local = service { true } else { false }
    }

    /// Makes a plan.
    package init(
        name: String, service: Service, router: Router, hosts: HostPolicy, users: Set<UInt32>? = nil,
        browsers: BrowserRule = .refuse, headLimits: HeadLimits = HeadLimits(), callers: Int? = nil,
        tokens: CallerTokenRule? = nil, health: HealthPath? = nil, isOptional: Bool = false
    ) {
        self.health = health
        self.tokens = tokens
        self.isOptional = isOptional
        self.callers = callers
        self.name = name
        self.service = service
        if case .authRequests = service { answersAuthRequests = true } else { answersAuthRequests = false }
        self.router = router
        self.hosts = hosts
        self.users = users
        asksForUser = users != nil || router.routes.contains { $0.users != nil }
        admittedUsers = router.users.map { users?.intersection($0) ?? $0 } ?? users
        self.browsers = browsers
        self.headLimits = headLimits
    }
}

/// Answers requests without an upstream. Called on a worker's thread; must not block.
package protocol LocalService: Sendable {
    /// Returns the answer to a request.
    func answer(_ request: LocalRequest) -> LocalAnswer
    /// Returns the answer to a request that needs data of other threads; `nil` if `answer` has it.
    func later(_ request: LocalRequest) -> LaterAnswer?
}

extension LocalService {
    /// Returns `nil`: no data of other threads is needed.
    package func later(_ request: LocalRequest) -> LaterAnswer? { nil }
}

/// An answer that is made when its data has arrived, or after a timeout.
package struct LaterAnswer: Sendable {
    /// The timeout.
    package var timeout: Duration
    /// Begins to collect the data. `done` must be called once at the end, on any thread, but not within the call.
    package var begin: @Sendable (_ done: @escaping @Sendable () -> Void) -> Void
    /// Makes the answer.
    package var answer: @Sendable () -> LocalAnswer
    /// Runs the making of the answer on another thread; `nil` if it takes no time worth mentioning.
    package var onThread: OnThread?

    /// Runs a job on another thread, after this call.
    package typealias OnThread = @Sendable (_ job: @escaping @Sendable () -> Void) -> Void

    /// Makes a later answer.
    package init(
        timeout: Duration, begin: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        onThread: OnThread? = nil, answer: @escaping @Sendable () -> LocalAnswer
    ) {
        self.timeout = timeout
        self.begin = begin
        self.onThread = onThread
        self.answer = answer
    }
}

/// A request to a local service, whose body has been discarded.
package struct LocalRequest: Sendable {
    /// The method's name.
    package var method: String
    /// The path, not decoded.
    package var path: String
    /// The query without its `?`; may be empty.
    package var query: String
    /// True if the request came over a Unix socket.
    package var isUnixSocket: Bool
    /// The value of `Accept`, several joined by commas (RFC 9110 §12.5.1); may be empty.
    package var accept: String

    /// Makes a request.
    package init(method: String, path: String, query: String, isUnixSocket: Bool, accept: String = "") {
        self.accept = accept
        self.method = method
        self.path = path
        self.query = query
        self.isUnixSocket = isUnixSocket
    }
}

/// The answer of a local service.
package struct LocalAnswer: Sendable {
    /// The status code.
    package var status: Int
    /// The media type of the body; empty without one.
    package var contentType: String
    /// The body.
    package var body: [UInt8]
    /// Further fields.
    package var fields: [(name: String, value: String)]

    /// Makes an answer.
    package init(
        status: Int, contentType: String, body: [UInt8], fields: [(name: String, value: String)] = []
    ) {
        self.status = status
        self.contentType = contentType
        self.body = body
        self.fields = fields
    }
}
