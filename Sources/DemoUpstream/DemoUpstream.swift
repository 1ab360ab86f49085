// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization
internal import System

/// Upstream that `countersign demo` protects, on one loopback port.
///
/// It has a bank with a MobileFirst server, and areas with the other kinds of logins.
package final class DemoUpstream: Sendable {
    private let server: DemoServer
    private let places: Places
    private let chosen: Mutex<UInt16>

    /// Creates an upstream on a port of 127.0.0.1 (0: any free port), not started yet.
    ///
    /// `onEvent` is called on any thread. `now` is the time source, by default the system's.
    package init(port: UInt16 = 0, onEvent: @escaping DemoTeller = { _ in }, now: DemoClock? = nil) {
        let places = Places(now: now ?? SystemClock.wallClock, tell: onEvent)
        self.places = places
        chosen = Mutex(port)
        server = DemoServer(tell: onEvent) { places.respond(to: $0) }
    }

    /// Binds the port and serves; throws if the port is unavailable.
    package func start() throws(DemoServerError) {
        let port = try server.start(port: port)
        chosen.withLock { $0 = port }
    }

    /// Closes every connection.
    package func stop() { server.stop() }

    /// Answers a request without a socket.
    package func respond(to request: DemoRequest) -> DemoResponse { places.respond(to: request) }

    /// Port that the server uses, or will use.
    package var port: UInt16 { chosen.withLock { $0 } }

    /// URL for `upstreams.….url`, so that `/balance` is the balance.
    package var bankURL: String { "http://127.0.0.1:\(port)/mfp/api/adapters/bank/" }

    /// Returns a free port of 127.0.0.1.
    package static func freePort() throws(DemoServerError) -> UInt16 { try DemoServer.freePort() }
}

/// Dispatcher of requests to the bank and the areas.
private struct Places: Sendable {
    private let bank: Bank
    private let areas: [any DemoArea]
    private let tell: DemoTeller

    init(now: @escaping DemoClock, tell: @escaping DemoTeller) {
        self.tell = tell
        bank = Bank(now: now, tell: tell)
        areas = [
            BasicArea(tell: tell), CheckArea(tell: tell), DigestArea(tell: tell), FormArea(tell: tell),
            GatewayArea(tell: tell), OpenArea(), TicketArea(tell: tell), TokenArea(now: now, tell: tell),
        ]
    }

    func respond(to request: DemoRequest) -> DemoResponse {
        if request.path.hasPrefix(Bank.api) { return bank.respond(to: request, serve: serve) }
        if let area = areas.first(where: { request.path.hasPrefix($0.path) }) {
            return area.respond(to: request) { request in
                serve(request, request.path.hasSuffix("/stream") ? Samples.stream : Samples.echo)
            }
        }
        return request.path == "/" ? .text(200, index) : .text(404, "Not found. See / for a list of resources.")
    }

    private func serve(_ request: DemoRequest, _ resource: (DemoRequest) -> DemoResponse) -> DemoResponse {
        let response = resource(request)
        tell(.resourceServed(method: request.method, path: request.path, status: response.status))
        return response
    }
}

private let index = """
    The demonstration's upstream. All data is invented, including the secrets.

    /mfp/api/adapters/bank/balance    a balance, behind the security check PinCodeAttempts (PIN 1234)
    /mfp/api/adapters/bank/transfer   POST: a receipt, behind the same
    /mfp/api/adapters/bank/stream     server-sent events, behind the same
    /mfp/api/adapters/bank/whoami     how a request arrived, for any registered client
    /basic/                           HTTP Basic, realm Demo, user ann, password demo
    /digest/                          HTTP Digest, the same realm, user and password
    /form/                            a login page with j_security_check, user ann, password demo
    /portal/                          a gateway of two rounds, user ann, password demo
    /ticket/                          a scheme of its own: Authorization: Ticket demo
    /checks/                          security checks named in responses, answered at /checks/login, PIN 1234
    /oauth/api/                       bearer tokens of /oauth/token, client demo, secret demo:secret+%
    /open/                            no protection: an echo, and server-sent events at /open/stream
    """

/// Event of the demonstration's upstream, printed as one line. Never contains an answer or a token.
package enum DemoEvent: Sendable, Equatable, CustomStringConvertible {
    /// An answer was right.
    case answerAccepted(check: String)
    /// An answer was wrong.
    case answerRejected(check: String)
    /// A check was blocked.
    case checkFailed(check: String, reason: String)
    /// A check requires an answer; with the remaining attempts.
    case challengeIssued(check: String, attempts: Int64)
    /// A client was registered.
    case clientRegistered(application: String)
    /// A login page was served.
    case loginPageServed(path: String)
    /// A malformed request arrived; with the broken rule.
    case noRequest(reason: String)
    /// A resource was served.
    case resourceServed(method: String, path: String, status: Int)
    /// A token was issued for that scope and number of seconds.
    case tokenIssued(scope: String, seconds: Int64)
    /// A request lacked the required authorization.
    case unauthorized(path: String, challenge: String)

    /// Description in one line, without a line break.
    package var description: String {
        switch self {
        case .answerAccepted(let check): "upstream: answer to \(check) accepted"
        case .answerRejected(let check): "upstream: answer to \(check) rejected"
        case .checkFailed(let check, let reason): "upstream: \(check) failed: \(reason)"
        case .challengeIssued(let check, let attempts):
            "upstream: challenge \(check) issued, \(attempts) attempt\(attempts == 1 ? " remains" : "s remain")"
        case .clientRegistered(let application): "upstream: client of \(application) registered"
        case .loginPageServed(let path): "upstream: login page served in place of \(path)"
        case .noRequest(let reason): "upstream: not a valid request: \(reason)"
        case .resourceServed(let method, let path, let status): "upstream: \(method) \(path) served with \(status)"
        case .tokenIssued(let scope, let seconds): "upstream: token issued for \(scope), valid \(seconds) s"
        case .unauthorized(let path, let challenge): "upstream: \(path) refused: \(challenge)"
        }
    }
}

/// Observer of the events, called on the thread on which they happen.
package typealias DemoTeller = @Sendable (DemoEvent) -> Void

/// Source of the time in ms since 1970, MobileFirst's unit.
package typealias DemoClock = @Sendable () -> Int64
