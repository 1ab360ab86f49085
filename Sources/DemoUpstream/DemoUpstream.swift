// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The upstream that `countersign demo` protects: on one loopback port a bank behind a MobileFirst server, and areas behind the
/// other kinds of logins.
package final class DemoUpstream: Sendable {
    private let server: DemoServer
    private let places: Places
    private let chosen: Mutex<UInt16>

    /// An upstream on that port of 127.0.0.1 (0 is a free one), not started yet. `onEvent` hears of what happens, on any thread.
    ///
    /// The time is the system's, or that of a test.
    package init(port: UInt16 = 0, onEvent: @escaping DemoTeller = { _ in }, now: DemoClock? = nil) {
        let places = Places(now: now ?? systemTime, tell: onEvent)
        self.places = places
        chosen = Mutex(port)
        server = DemoServer(tell: onEvent) { places.respond(to: $0) }
    }

    /// Binds and serves; throws where the port cannot be had.
    package func start() throws(DemoServerError) {
        let port = try server.start(port: port)
        chosen.withLock { $0 = port }
    }

    /// Ends every connection.
    package func stop() { server.stop() }

    /// Answers a request without a socket.
    package func respond(to request: DemoRequest) -> DemoResponse { places.respond(to: request) }

    /// The port it listens on, or is to listen on.
    package var port: UInt16 { chosen.withLock { $0 } }

    /// What the address to give as `upstreams.….url` is, so that `/balance` is the balance.
    package var bankURL: String { "http://127.0.0.1:\(port)/mfp/api/adapters/bank/" }

    /// A port of 127.0.0.1 that nobody listens on.
    package static func freePort() throws(DemoServerError) -> UInt16 { try DemoServer.freePort() }
}

/// All that answers on the one port.
private struct Places: Sendable {
    private let bank: Bank
    private let areas: [any DemoArea]
    private let tell: DemoTeller

    init(now: @escaping DemoClock, tell: @escaping DemoTeller) {
        self.tell = tell
        bank = Bank(now: now, tell: tell)
        areas = [
            BasicArea(tell: tell), CheckArea(tell: tell), DigestArea(tell: tell), FormArea(tell: tell), OpenArea(),
            TokenArea(now: now, tell: tell),
        ]
    }

    func respond(to request: DemoRequest) -> DemoResponse {
        if request.path.hasPrefix(Bank.api) { return bank.respond(to: request, serve: serve) }
        if let area = areas.first(where: { request.path.hasPrefix($0.path) }) {
            return area.respond(to: request) { request in
                serve(request, request.path.hasSuffix("/stream") ? Samples.stream : Samples.echo)
            }
        }
        return request.path == "/" ? .text(200, index) : .text(404, "Nothing here. / tells what there is.")
    }

    private func serve(_ request: DemoRequest, _ resource: (DemoRequest) -> DemoResponse) -> DemoResponse {
        let response = resource(request)
        tell(.resourceServed(method: request.method, path: request.path, status: response.status))
        return response
    }
}

private let index = """
    The demonstration's upstream. Everything here is made up, the secrets included.

    /mfp/api/adapters/bank/balance    a balance, behind the security check PinCodeAttempts (PIN 1234)
    /mfp/api/adapters/bank/transfer   POST: a receipt, behind the same
    /mfp/api/adapters/bank/stream     server-sent events, behind the same
    /mfp/api/adapters/bank/whoami     how a request arrived, for any registered client
    /basic/                           HTTP Basic, realm Demo, user ann, password demo
    /digest/                          HTTP Digest, the same realm, user and password
    /form/                            a login page with j_security_check, user ann, password demo
    /checks/                          answers that name a security check, whose answer goes to /checks/login, PIN 1234
    /oauth/api/                       bearer tokens of /oauth/token, client demo, secret demo:secret+%
    /open/                            no protection: an echo, and server-sent events at /open/stream
    """
