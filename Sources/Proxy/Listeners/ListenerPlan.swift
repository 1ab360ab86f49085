// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
package import HTTPWire

/// What a listener lets in and where it sends it. Immutable; a reload makes new ones. An object, for every request takes
/// hold of it, and of a value it would take hold of each part.
package final class ListenerPlan: Sendable {
    /// What the listener is there for.
    package enum Service: Sendable {
        /// Sub-requests of another proxy are answered, nothing goes upstream by itself.
        case authority
        /// Answers of our own: the admin listener.
        case local(any LocalService)
        /// Requests go upstream.
        case proxy
    }

    /// Its address as the configuration writes it, for logs and status.
    package let name: String
    /// What it is there for.
    package let service: Service
    /// Its routes.
    package let router: Router
    /// The host names accepted.
    package let hosts: HostPolicy
    /// The uids allowed; `nil`: all.
    package let users: Set<UInt32>?
    /// The most callers connected at once; `nil`: only `limits.callers` bounds them.
    package let callers: Int?
    /// True if it takes the caller's uid to decide about a request.
    package let asksForUser: Bool
    /// The only uids that any request is taken from: those of the listener, or of all its routes where nothing goes elsewhere;
    /// `nil`: whoever calls has to be heard.
    let admittedUsers: Set<UInt32>?
    /// The browsers' requests that are let in.
    package let browsers: BrowserRule
    /// Limits on request heads.
    package let headLimits: HeadLimits
    /// True if the proxy serves without it where its address cannot be had: nobody has asked for it.
    package let isOptional: Bool

    /// True if it answers sub-requests of another proxy.
    let isAuthority: Bool

    /// True if it answers by itself: its callers do not count among those whom `limits.callers` bounds.
    var isLocal: Bool {
        if case .local = service { true } else { false }
    }

    /// A plan.
    package init(
        name: String, service: Service, router: Router, hosts: HostPolicy, users: Set<UInt32>? = nil,
        browsers: BrowserRule = .refuse, headLimits: HeadLimits = HeadLimits(), callers: Int? = nil,
        isOptional: Bool = false
    ) {
        self.isOptional = isOptional
        self.callers = callers
        self.name = name
        self.service = service
        if case .authority = service { isAuthority = true } else { isAuthority = false }
        self.router = router
        self.hosts = hosts
        self.users = users
        asksForUser = users != nil || router.routes.contains { $0.users != nil }
        admittedUsers = router.users.map { users?.intersection($0) ?? $0 } ?? users
        self.browsers = browsers
        self.headLimits = headLimits
    }
}

/// Answers requests by itself, without an upstream. Called on a worker's thread; must not block.
package protocol LocalService: Sendable {
    /// The answer to a request for `path`, with `query` as it came, from a caller on a Unix socket or not.
    func answer(_ request: LocalRequest) -> LocalAnswer
    /// The answer to a request for which something has to be asked of others first; `nil`: `answer` has it.
    func later(_ request: LocalRequest) -> LaterAnswer?
}

extension LocalService {
    /// Nothing is asked of others.
    package func later(_ request: LocalRequest) -> LaterAnswer? { nil }
}

/// An answer that is made when something has come, or when it was waited for long enough.
package struct LaterAnswer: Sendable {
    /// How long is waited at most.
    package var patience: Duration
    /// Begins what is waited for; `done` is to be called at its end, once, on any thread, not within the call.
    package var begin: @Sendable (_ done: @escaping @Sendable () -> Void) -> Void
    /// Makes the answer.
    package var answer: @Sendable () -> LocalAnswer

    /// An answer.
    package init(
        patience: Duration, begin: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        answer: @escaping @Sendable () -> LocalAnswer
    ) {
        self.patience = patience
        self.begin = begin
        self.answer = answer
    }
}

/// A request to a local service, whose body has been read over.
package struct LocalRequest: Sendable {
    /// The method's name.
    package var method: String
    /// The path, not decoded.
    package var path: String
    /// What follows the `?`, or nothing.
    package var query: String
    /// True if it came over a Unix socket.
    package var isUnixSocket: Bool
    /// The value of `Accept`, several joined by commas (RFC 9110 §12.5.1); empty where there is none.
    package var accept: String

    /// A request.
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
    /// The media type of the body; nothing where there is none.
    package var contentType: String
    /// The body.
    package var body: [UInt8]
    /// Further fields.
    package var fields: [(name: String, value: String)]

    /// An answer.
    package init(
        status: Int, contentType: String, body: [UInt8], fields: [(name: String, value: String)] = []
    ) {
        self.status = status
        self.contentType = contentType
        self.body = body
        self.fields = fields
    }
}
