// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
package import Curl
package import EventLoop
internal import HTTPWire

/// The client on one worker: its loop, its libcurl, its upstreams and its logins.
package final class ClientRuntime {
    /// The loop.
    package let loop: EventLoop
    /// The libcurl driver on that loop.
    package let driver: CurlDriver
    /// The worker's number.
    package let worker: Int
    /// The counters of exchanges on this worker.
    package let meters = UpstreamMeters()
    let services: ClientServices
    /// The buffer for each request's head, which is sent before the next one is written.
    let head = FieldSink()
    /// The limit of idle connections: of libcurl, and of each upstream's HTTP/1.1 pool.
    let connectionLimit: Int
    /// The libcurl driver for connections used without libcurl's transfers; created on first use.
    private var connectionDriver: CurlDriver?
    /// The libcurl driver for connections of one transfer each; created on first use.
    private var transferDriver: CurlDriver?
    /// The clients whose snapshots may hold outdated sessions.
    ///
    /// Not weak references: an object with one uses slower reference counting from then on, and each request counts its
    /// upstream's client many times.
    private var clients: [ObjectIdentifier: ListedClient] = [:]
    private var lastExchange: UInt64 = 0
    /// The transport of requests to upstreams.
    private(set) lazy var transport = services.transport.make(self)
    /// The logins of this worker.
    package private(set) lazy var logins = LoginRunner(self)
    /// The confirmations of sessions in doubt.
    private(set) lazy var confirmations = ConfirmationRunner(self)
    /// The looks for login pages behind answers that do not show them.
    private(set) lazy var looks = PageLooks(self)
    /// The waiters for either.
    private(set) lazy var waiters = LoginWaiters(self)

    /// Creates a runtime on `loop`, on its thread; throws if libcurl is out of memory.
    package init(loop: EventLoop, worker: Int, services: ClientServices, connections: Int) throws(CurlError) {
        self.loop = loop
        self.worker = worker
        self.services = services
        connectionLimit = connections
        driver = try CurlDriver(loop: loop, connections: connections)
        services.roster.enlist(self)
    }

    /// Returns the driver for connections that libcurl only establishes.
    ///
    /// The driver has its own multi handle: in that of the transfers each connection would count as idle, and libcurl
    /// scans all idle ones whenever a transfer ends.
    package func connections() throws(CurlError) -> CurlDriver {
        if let connectionDriver { return connectionDriver }
        let made = try CurlDriver(loop: loop, connections: 1 << 20)
        connectionDriver = made
        return made
    }

    /// Returns the driver for transfers that call `EasyHandle.useOnce`, and for no others.
    ///
    /// In a multi handle with other transfers, those could join such a connection of HTTP/2.
    func unsharedDriver() throws(CurlError) -> CurlDriver {
        if let transferDriver { return transferDriver }
        let made = try makeDriver()
        transferDriver = made
        return made
    }

    /// Creates a libcurl driver with connections of its own.
    func makeDriver() throws(CurlError) -> CurlDriver { try CurlDriver(loop: loop, connections: connectionLimit) }

    /// Adds `client` until its deinit.
    func enlist(_ client: UpstreamClient) {
        clients[ObjectIdentifier(client)] = ListedClient(client: client)
    }

    /// Removes `client` at its deinit.
    func delist(_ client: UpstreamClient) { clients[ObjectIdentifier(client)] = nil }

    /// Releases dropped and replaced sessions, and closes their connections, even without a request.
    func refreshSnapshots() {
        let now = wallClock()
        for entry in clients.values {
            entry.client.routes.refresh(from: gate, now: now)
            entry.client.streams.endOutdated(by: gate, now: now)
        }
    }

    var gate: SharedAttemptGate { services.gate }

    /// Returns the time in milliseconds since 1970.
    func wallClock() -> Int64 { services.wallClock() }

    func nextTicket() -> ExchangeTicket {
        lastExchange += 1
        return ExchangeTicket(worker: worker, exchange: lastExchange)
    }

    /// Returns the id of the request identified by `ticket`.
    package func id(of ticket: ExchangeTicket) -> ExchangeID {
        ExchangeID(process: services.processTag, ticket: ticket)
    }

    /// Returns an id for a request without an exchange.
    package func nextID() -> ExchangeID { id(of: nextTicket()) }
}

/// An unowned reference to a client, which removes itself in deinit.
private struct ListedClient {
    unowned let client: UpstreamClient
}

/// The id of one caller's request in local replies, log lines and records: `4f3a9c21-0-17`.
///
/// Made of process, worker and number. The text is made only when read.
package struct ExchangeID: Sendable, Hashable, CustomStringConvertible {
    /// Identifies the process in a log with several.
    private let process: UInt32
    private let ticket: ExchangeTicket

    /// Creates the id of the request identified by `ticket` in the process of that tag.
    package init(process: UInt32, ticket: ExchangeTicket) {
        self.process = process
        self.ticket = ticket
    }

    /// The text, of hexadecimal digits, digits and hyphens.
    package var description: String { "\(Hex.encode(process))-\(ticket.worker)-\(ticket.exchange)" }
}
