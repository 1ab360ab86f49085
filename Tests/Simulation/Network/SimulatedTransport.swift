// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import EventLoop
import HTTPTypes
import HTTPWire

@testable import ChallengeClient

/// The transport of a simulated process, in place of libcurl.
final class SimulatedTransport: UpstreamTransport {
    private unowned let runtime: ClientRuntime
    private let simulation: Simulation
    private let traffic: Traffic
    private let node: Int

    init(_ runtime: ClientRuntime, of traffic: Traffic, node: Int, in simulation: Simulation) {
        self.node = node
        self.runtime = runtime
        self.traffic = traffic
        self.simulation = simulation
    }

    func streams(for plan: UpstreamPlan) -> any StreamSource {
        SimulatedStreams(
            to: simulation.server(at: plan.base.origin) ?? simulation.servers[0], runtime: runtime, traffic: traffic,
            simulation: simulation)
    }

    func send(
        _ request: SideRequest, of login: String, plan: UpstreamPlan,
        finish: @escaping (Result<SideResponse, SideRequestError>) -> Void
    ) {
        simulation.rules.sideRequest(of: login)
        SimulatedSideRequest(
            request, of: simulation.login(login, at: node), traffic, in: simulation, on: runtime.loop, finish
        ).begin()
    }
}

/// The streams to one upstream.
final class SimulatedStreams: StreamSource {
    let server: SimulatedServer
    private let runtime: ClientRuntime
    private let traffic: Traffic
    let simulation: Simulation
    /// The product's own choice of an idle connection.
    let idle: IdleStreams<SimulatedStream>

    init(to server: SimulatedServer, runtime: ClientRuntime, traffic: Traffic, simulation: Simulation) {
        self.server = server
        self.runtime = runtime
        self.traffic = traffic
        self.simulation = simulation
        idle = IdleStreams(limit: 16)
        traffic.retain(self)
    }

    func stream(
        for request: ExchangeRequest, on connections: ConnectionUse, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream {
        if !request.isUpgrade, let known = idle.take(for: request, on: runtime.loop) { return known }
        let stream = SimulatedStream(source: self, runtime: runtime)
        stream.transfer.isUpgrade = request.isUpgrade
        return stream
    }

    func open(_ stream: SimulatedStream) -> Link {
        let link = Link(stream, to: server, in: simulation)
        traffic.add(link)
        return link
    }

    func stream(
        for request: ExchangeRequest, returningTo handshake: IdleStreams<HTTP1Stream>
    ) throws(CurlError) -> any UpstreamStream { try stream(for: request, on: .own, sessions: .none) }

    func endOutdated(by gate: SharedAttemptGate, now: Int64) {}
    func closeBound() {}

    func close() { idle.close() }

    func successor(for plan: UpstreamPlan) -> any StreamSource { self }
}

/// One side request on its way: it may be lost before the server sees it, or its answer after that.
final class SimulatedSideRequest {
    private let request: SideRequest
    private let login: WatchedLogin
    private let traffic: Traffic
    private let simulation: Simulation
    private var finish: ((Result<SideResponse, SideRequestError>) -> Void)?
    private var attempt: Attempt?
    private let timer: LazyTimer
    private let began: Int
    private let loop: EventLoop

    init(
        _ request: SideRequest, of login: WatchedLogin, _ traffic: Traffic, in simulation: Simulation,
        on loop: EventLoop,
        _ finish: @escaping (Result<SideResponse, SideRequestError>) -> Void
    ) {
        self.request = request
        self.login = login
        self.traffic = traffic
        self.simulation = simulation
        self.loop = loop
        self.finish = finish
        began = simulation.steps
        timer = LazyTimer(loop: loop)
    }

    func begin() {
        timer.onExpiry = { [self] in end(.failure(SideRequestError(.timedOut, reason: "simulated"))) }
        timer.arm(at: loop.now + request.timeout)
        traffic.add(self)
        if !request.isLook { simulation.logins.requestBegan(self, of: login, isPost: request.method == .post) }
        simulation.agenda.add { [self] in arrive() }
    }

    /// Ends the request at the end of its process.
    func cut() { cut(.unreachable) }

    private func cut(_ kind: SideRequestError.Kind) { end(.failure(SideRequestError(kind, reason: "simulated"))) }

    private func arrive() {
        guard finish != nil else { return }
        if simulation.isFault(12) { return cut() }
        guard let server = simulation.server(at: request.url.origin) else {
            simulation.violated("rule 11: a login asks \(request.url.origin), which nobody has named")
            return cut()
        }
        let answer = server.answer(to: ServerRequest(request, sentAt: began), examined: nil)
        guard let answer else { return }
        attempt = answer.attempt
        simulation.happens(late: simulation.isFault(30)) { [self] in deliver(answer) }
    }

    private func deliver(_ answer: ServerAnswer) {
        guard finish != nil else { return }
        if attempt == nil ? simulation.isFault(12) : simulation.judgements.losesNext() {
            // The bytes that arrive in its place are not an answer.
            return cut(simulation.chance.oneIn(3) ? .badAnswer : .unreachable)
        }
        attempt?.isDelivered()
        attempt = nil
        var fields = HTTPFields()
        for field in answer.fields {
            if let name = HTTPField.Name(field.name) { fields.append(HTTPField(name: name, value: field.value)) }
        }
        let body = request.method == .head ? [] : answer.body
        end(.success(SideResponse(status: answer.status, fields: fields, body: body)))
    }

    private func end(_ result: Result<SideResponse, SideRequestError>) {
        guard let finish else { return }
        self.finish = nil
        if request.method == .get, !result.isUsable {
            let isAnswered = (try? result.get()) != nil
            simulation.lookFailed(
                at: request.url.origin, isComparison: isAnswered && request.fields[.cookie] == nil)
        }
        attempt?.isLost()
        attempt = nil
        timer.cancel()
        timer.onExpiry = nil
        traffic.remove(self)
        simulation.logins.requestEnded(self, of: login)
        finish(result)
    }
}

extension Result<SideResponse, SideRequestError> {
    /// True if the answer is a verdict on a session: the server is in no trouble.
    fileprivate var isUsable: Bool {
        guard case .success(let response) = self else { return false }
        return response.status < 500 && ![408, 429].contains(response.status)
    }
}

/// The requests of a process on their way to servers: they end with the process.
final class Traffic: @unchecked Sendable {
    private var links: [ObjectIdentifier: Link] = [:]
    private var sideRequests: [ObjectIdentifier: SimulatedSideRequest] = [:]
    /// Kept, since streams refer to their source.
    private var sources: [SimulatedStreams] = []

    /// True if no login sends anything.
    var isQuiet: Bool { sideRequests.isEmpty }

    func add(_ link: Link) {
        if links.count > 256 { links = links.filter { !$0.value.isOver } }
        links[ObjectIdentifier(link)] = link
    }

    func add(_ request: SimulatedSideRequest) { sideRequests[ObjectIdentifier(request)] = request }

    func remove(_ request: SimulatedSideRequest) { sideRequests[ObjectIdentifier(request)] = nil }

    func retain(_ source: SimulatedStreams) { sources.append(source) }

    /// Cuts everything off.
    func cut() {
        for link in links.values { link.cut() }
        for request in sideRequests.values { request.cut() }
    }

    /// Forgets everything.
    func clear() { (links, sources) = ([:], []) }
}

/// The judgements of credentials that are lost on their way: now and then, and sometimes each for a while.
struct LostJudgements {
    private unowned let simulation: Simulation
    /// The time until which each is lost, in ms since 1970.
    private var end: Int64 = 0

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Returns true if the next one is lost.
    mutating func losesNext() -> Bool {
        let isBeginning = simulation.now >= end
        guard simulation.isFault(isBeginning ? 12 : 1) else { return false }
        if isBeginning, simulation.chance.oneIn(3) { end = simulation.now + 20_000 }
        return true
    }
}
