// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl
package import EventLoop
internal import HTTPWire

/// The client on one worker: its loop, its libcurl, the exchanges there that wait for a login.
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
    private var waiting: [UInt64: Exchange] = [:]
    private var waitingLogins: [UInt64: (SessionTable<ExchangeTicket>.Outcome) -> Void] = [:]

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

    // MARK: Waiting

    func wait(_ exchange: Exchange, ticket: ExchangeTicket) { waiting[ticket.exchange] = exchange }

    /// The same for a login that stands behind another; `finish` is called once, with the outcome.
    func wait(ticket: ExchangeTicket, _ finish: @escaping (SessionTable<ExchangeTicket>.Outcome) -> Void) {
        waitingLogins[ticket.exchange] = finish
    }

    func stopWaiting(_ ticket: ExchangeTicket, for key: SessionKey) {
        guard waiting.removeValue(forKey: ticket.exchange) != nil else { return }
        gate.change { $0.sessions.leave(key, waiter: ticket) }
    }

    func tell(_ outcomes: SharedAttemptGate.Outcomes) {
        for (ticket, outcome) in outcomes {
            if let exchange = waiting.removeValue(forKey: ticket.exchange) {
                exchange.loginEnded(outcome)
                continue
            }
            waitingLogins.removeValue(forKey: ticket.exchange)?(outcome)
            if case .prove(let key, let trial) = outcome {
                // It was given up meanwhile: another is to try.
                judge(key, generation: trial.generation, .undecided, ticket: ticket)
            }
        }
    }
}

/// A client, which takes itself off the list at its end.
private struct ListedClient {
    unowned let client: UpstreamClient
}
