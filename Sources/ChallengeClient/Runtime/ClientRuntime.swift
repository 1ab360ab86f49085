// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl
package import EventLoop
internal import HTTPWire

/// The client on one worker: its loop, its libcurl, its upstreams and its logins.
package final class ClientRuntime {
    /// The loop.
    package let loop: EventLoop
    /// libcurl on that loop.
    package let driver: CurlDriver
    /// The worker's number.
    package let worker: Int
    /// What is counted of exchanges here.
    package let meters = UpstreamMeters()
    let services: ClientServices
    /// The memory that the head of each request is written to: before the next one it is on its way.
    let head = FieldSink()
    /// How many connections may rest: libcurl's, and as many of each upstream's lines.
    let connectionLimit: Int
    /// libcurl for connections that others speak on; made for the first.
    private var connectionDriver: CurlDriver?
    /// libcurl for connections that are bound to a user.
    private var boundDrivers: [ConnectionGroup: CurlDriver] = [:]
    /// Whose snapshots may hold sessions that nobody else does any more. Not weak references: an object that has had one counts all
    /// others in a slower way from then on, and each request counts its upstream's client many times.
    private var clients: [ObjectIdentifier: ListedClient] = [:]
    private var lastExchange: UInt64 = 0
    /// The logins that run here.
    package private(set) lazy var logins = LoginRunner(self)
    /// The sessions that are in doubt.
    private(set) lazy var confirmations = ConfirmationRunner(self)
    /// Those that wait for either.
    private(set) lazy var waiters = LoginWaiters(self)

    /// A runtime on `loop`, made on its thread; throws when libcurl is out of memory.
    package init(loop: EventLoop, worker: Int, services: ClientServices, connections: Int) throws(CurlError) {
        self.loop = loop
        self.worker = worker
        self.services = services
        connectionLimit = connections
        driver = try CurlDriver(loop: loop, connections: connections)
        services.roster.enlist(self)
    }

    /// A multi handle of their own for the connections that libcurl only makes: in that of the transfers each of them would
    /// count as one that rests, and libcurl looks over all of those whenever a transfer ends.
    package func connections() throws(CurlError) -> CurlDriver {
        if let connectionDriver { return connectionDriver }
        let made = try CurlDriver(loop: loop, connections: 1 << 20)
        connectionDriver = made
        return made
    }

    /// libcurl with connections for that group and no other.
    func driver(of group: ConnectionGroup) throws(CurlError) -> CurlDriver {
        if let known = boundDrivers[group] { return known }
        let made = try CurlDriver(loop: loop, connections: connectionLimit)
        boundDrivers[group] = made
        return made
    }

    /// `client` is on this worker from now on, and until its end.
    func enlist(_ client: UpstreamClient) {
        clients[ObjectIdentifier(client)] = ListedClient(client: client)
    }

    /// `client` ends.
    func delist(_ client: UpstreamClient) { clients[ObjectIdentifier(client)] = nil }

    /// Lets go of sessions that have been dropped or replaced, also where no request comes by.
    func refreshSnapshots() {
        let now = wallClock()
        for entry in clients.values { entry.client.routes.refresh(from: gate, now: now) }
    }

    var gate: SharedAttemptGate { services.gate }

    /// Milliseconds since 1970.
    func wallClock() -> Int64 { services.wallClock() }

    func nextTicket() -> ExchangeTicket {
        lastExchange += 1
        return ExchangeTicket(worker: worker, exchange: lastExchange)
    }

    /// The id of what `ticket` names.
    package func id(of ticket: ExchangeTicket) -> ExchangeID {
        ExchangeID(process: services.processTag, ticket: ticket)
    }

    /// An id for a request that no exchange begins for.
    package func nextID() -> ExchangeID { id(of: nextTicket()) }
}

/// A client, which takes itself off the list at its end.
private struct ListedClient {
    unowned let client: UpstreamClient
}
