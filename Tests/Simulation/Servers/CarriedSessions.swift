// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling

/// The sessions that the last request of each order carried: the judge of rule 4 for refusals that are not about a session.
struct CarriedSessions {
    private unowned let simulation: Simulation
    /// The steps of the requests that came without a session, although the daemon had one.
    private var bare: [Int: Int] = [:]
    /// The last step in which the daemon was without a session for each challenge.
    private var cold: [String: Int] = [:]

    /// The orders whose last request carried nothing of a login.
    private var empty: Set<Int> = []

    /// The ages of the sessions.
    var ages: SessionAges

    init(_ simulation: Simulation) {
        self.simulation = simulation
        ages = SessionAges(simulation)
    }

    /// Notes that a login begins.
    mutating func isLoggingIn(_ challenge: String) { cold[challenge] = simulation.steps }

    /// Notes a request of a caller.
    mutating func note(_ request: ServerRequest, at server: SimulatedServer) {
        guard !request.isSide, let number = request.value("x-order").flatMap({ Int($0) }) else { return }
        if server.protection.isCarried(by: request) { empty.remove(number) } else { empty.insert(number) }
        guard server.protection.isScheme else { return }
        let hasSession = hasSession(at: server)
        if !hasSession { cold[server.protection.challengeName] = simulation.steps }
        bare[number] = hasSession && !server.protection.isCarried(by: request) ? simulation.steps : nil
    }

    /// Returns true if the daemon has a session at a server, for all callers.
    func hasSession(at server: SimulatedServer) -> Bool {
        let key = SessionKey(
            origin: Origin(scheme: .http, host: server.protection.host, port: UInt16(server.port)),
            challenge: server.protection.challengeName, credential: server.protection.account.name)
        return simulation.process.services.gate.read { $0.sessions.hasSession(for: key) }
    }

    /// Returns true if the last request of an order carried nothing of a login.
    func isEmpty(_ order: Order) -> Bool { empty.contains(order.number) }

    /// Returns true if an order was refused because its request lacked the session, which the daemon had all the time
    /// and the server accepts.
    func isWithoutSession(_ order: Order) -> Bool {
        guard order.isForbidden, order.wasAccepted, !order.server.protection.account.wasEverWrong,
            simulation.rules.restarts == 0, simulation.lastFault == 0, let step = bare[order.number]
        else { return false }
        // A challenge that cannot be answered passes anyhow.
        guard case .usual = ResourceManner(order, in: simulation), !order.server.protection.isRefused(order)
        else {
            return false
        }
        return cold[order.server.protection.challengeName, default: 0] < step
    }
}

/// The ages of the sessions that requests carry: the judge of rule 5, by which an old session's refusal is no caller's answer.
struct SessionAges {
    private struct Refusal {
        /// The step in which the refused session was first seen.
        let age: Int
        /// In ms since 1970.
        let at: Int64
        /// The number of the order.
        let order: Int
        /// True if the session was established while the order waited: such a refusal is taken as the resource's.
        let isOfNew: Bool
    }

    /// The time for which a resource may be known to refuse a session and all later ones, in ms, including the time an
    /// answer takes.
    private static let memory: Int64 = 40_000

    private unowned let simulation: Simulation
    /// The steps in which sessions were first seen, by server and session.
    private var ages: [String: Int] = [:]
    private var refusals: [String: [Refusal]] = [:]
    /// The resources that have refused orders.
    private var resources: [Int: String] = [:]
    /// The sessions with which a request was carried out: the refusal of another session may be the answer to one just
    /// established.
    private var served: Set<String> = []
    /// The orders that were last refused with an earlier session, although nothing shows that their resource refuses
    /// all.
    private var outdated: Set<Int> = []

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Notes the session of a request.
    mutating func isSeen(_ request: ServerRequest, at server: SimulatedServer) { _ = age(of: request, at: server) }

    /// Returns true if the server has seen another session since that of a request: then its refusal only asks for that one.
    func isOld(_ request: ServerRequest, at server: SimulatedServer) -> Bool {
        guard let name = Self.name(of: request, at: server), let age = ages[name] else { return false }
        return ages.contains {
            $0.value > age && $0.key.hasPrefix("\(server.name) ") && !Self.isIssuedEarlier($0.key, than: name)
        }
    }

    /// Returns true if one session was issued before another of its kind, although it was perhaps first seen later: their texts end
    /// with rising numbers.
    private static func isIssuedEarlier(_ one: String, than other: String) -> Bool {
        let (first, second) = (one.reversed().prefix { $0.isNumber }, other.reversed().prefix { $0.isNumber })
        guard one.dropLast(first.count) == other.dropLast(second.count), let earlier = Int(String(first.reversed())),
            let later = Int(String(second.reversed()))
        else { return false }
        return earlier < later
    }

    /// Notes that an order is refused with the session of `request`.
    mutating func isRefused(_ order: Order, _ request: ServerRequest, at server: SimulatedServer) {
        outdated.remove(order.number)
        guard let age = age(of: request, at: server) else { return }
        let resource = "\(server.name) \(order.method) \(request.path)"
        resources[order.number] = resource
        let begin = simulation.now - Self.memory
        let recent = refusals[resource, default: []].filter { $0.at >= begin }
        let isOlder = simulation.time(of: age) < order.began
        refusals[resource] =
            recent + [Refusal(age: age, at: simulation.now, order: order.number, isOfNew: !isOlder)]
        // A session that was used before the order began was not established for it, and no other shows that the
        // resource refuses all.
        guard isOlder, !recent.contains(where: { $0.age < age || $0.isOfNew }),
            let name = Self.name(of: request, at: server)
        else { return }
        // A password may be wrong by now, unless another one has been right since.
        let password = "\(server.name) Basic "
        let isReplaced = served.contains { $0.hasPrefix(password) && ages[$0, default: 0] > age }
        if served.contains(name), isReplaced || !name.hasPrefix(password) {
            outdated.insert(order.number)
        }
    }

    /// Notes that an order is carried out with the session of `request`.
    mutating func isCarriedOut(_ order: Order, _ request: ServerRequest, at server: SimulatedServer) {
        outdated.remove(order.number)
        if let name = Self.name(of: request, at: server) { served.insert(name) }
    }

    /// Notes that the caller of an order has its answer, so that the daemon knows that its resource does not refuse all.
    mutating func isAnswered(_ order: Order) {
        guard let resource = resources.removeValue(forKey: order.number) else { return }
        refusals[resource]?.removeAll { $0.order == order.number }
    }

    /// Returns true if the resource of an order had refused another request with an older session, and nothing has shown since
    /// that it does not refuse all.
    func isKnownToRefuse(_ order: Order) -> Bool {
        guard let resource = resources[order.number], let known = refusals[resource],
            let own = known.last(where: { $0.order == order.number })
        else { return false }
        return known.contains { $0.order != order.number && $0.age < own.age && own.at - $0.at <= Self.memory }
    }

    /// Returns true if the last refusal of an order was about its session, which has ended: it asks for another one.
    func isOutdated(_ order: Order) -> Bool {
        let weather = simulation.weather
        return simulation.setting.nodes == 1 && !weather.hasFaults && !weather.troublesLooks
            && order.server.protection.hasOneSession && outdated.contains(order.number)
    }

    /// Returns the step in which the session of a request was first seen; `nil` if the request has no session that can
    /// be told apart.
    private mutating func age(of request: ServerRequest, at server: SimulatedServer) -> Int? {
        guard let name = Self.name(of: request, at: server) else { return nil }
        if let known = ages[name] { return known }
        ages[name] = simulation.steps
        return simulation.steps
    }

    private static func name(of request: ServerRequest, at server: SimulatedServer) -> String? {
        session(of: request).map { "\(server.name) \($0)" }
    }

    private static func session(of request: ServerRequest) -> String? {
        // An answer to a challenge differs in each request.
        if let value = request.value("authorization") {
            return value.hasPrefix("Bearer ") || value.hasPrefix("Basic ") ? value : nil
        }
        let own = (request.value("cookie") ?? "").split(separator: "; ").filter { $0.contains(Simulation.secretMark) }
        return own.isEmpty ? nil : own.sorted().joined(separator: "; ")
    }
}
