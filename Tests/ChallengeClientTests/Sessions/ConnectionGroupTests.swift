// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import ChallengeClient

@Suite("The connections that a request may use")
struct ConnectionGroupTests {
    private let gate = SharedAttemptGate(now: { 0 })

    private func slot(_ name: String, binds: Bool = true) -> RouteSessions.Slot {
        let origin = Origin(scheme: .https, host: "bank", port: 443)
        return RouteSessions.Slot(
            login: Authenticator(
                name: name, trigger: .bearer(realm: nil), isAhead: false,
                key: SessionKey(origin: origin, challenge: name, credential: name), credentials: [name],
                bindsConnections: binds, makeLogin: { _ in RefusedLogin(.init(.failed, challenge: name, detail: "")) }),
            scope: .empty)
    }

    private func logIn(_ slot: RouteSessions.Slot, expiresAt: Int64? = nil) {
        let field = InjectedField(name: .authorization, value: Secret("token"))
        _ = gate.change {
            $0.sessions.finish(
                slot.key, with: .success(Session(fields: [field], expiresAt: expiresAt)), now: 0, chance: 0)
        }
    }

    private func use(
        _ route: RouteSessions, now: Int64 = 0, _ change: (inout ExchangeRequest) -> Void = { _ in }
    ) -> ConnectionUse {
        route.refresh(from: gate, now: now)
        var request = ExchangeRequest(method: .get, framing: .none)
        change(&request)
        return ConnectionUse(of: request, carrying: route.fields, at: route)
    }

    @Test("requests of one generation share connections, at any route, and no others do")
    func generations() throws {
        let (one, other) = (
            RouteSessions(slots: [slot("a")]), RouteSessions(slots: [slot("b", binds: false), slot("a")])
        )
        #expect(use(one) == .common)
        logIn(slot("a"))
        let first = use(one)
        #expect(first != .common)
        #expect(use(other) == first)
        logIn(slot("b"))
        #expect(use(other) == first, "a session that binds nothing changes nothing")
        logIn(slot("a"))
        let second = use(one)
        #expect(second != first && second != .common && use(other) == second)
        guard case .bound(let group) = first else { return #expect(first != .common) }
        #expect(group.hasEnded(by: gate, now: 0))
    }

    @Test("a group ends with the first of its sessions: replaced, dropped or expired")
    func ends() throws {
        let route = RouteSessions(slots: [slot("a"), slot("b")])
        logIn(slot("a"), expiresAt: 1_000)
        logIn(slot("b"))
        guard case .bound(let group) = use(route) else { return #expect(use(route) != .common) }
        #expect(!group.hasEnded(by: gate, now: 999))
        #expect(group.hasEnded(by: gate, now: 1_000))
        _ = gate.change { $0.sessions.drop { $0.challenge == "b" } }
        #expect(group.hasEnded(by: gate, now: 999))
        #expect(use(route, now: 1_000) == .common, "no session is left")
    }

    @Test("a request with the caller's credentials, or without that of the connection, has a connection of its own")
    func single() {
        let route = RouteSessions(slots: [slot("a")])
        for _ in 0..<2 {
            #expect(use(route) { $0.keepsCredentials = true } == .single)
            #expect(use(route) { $0.omitsConnectionCredential = true } == .single)
            logIn(slot("a"))
        }
    }

    @Test("a caller's own credentials meet no session's connection, and those of a connection no other caller's")
    func own() {
        let (open, binding) = (RouteSessions(slots: []), RouteSessions(slots: [slot("a")]))
        for scheme in ["Negotiate YII=", "negotiate", "NTLM TlRM", "nTlM x", "Kerberos x", "Nego2 x"] {
            let own = OwnAuthorization(scheme.utf8.span)
            #expect(own == .connection, "\(scheme)")
            #expect(use(open) { $0.ownAuthorization = own } == .own)
            #expect(use(binding) { $0.ownAuthorization = own } == .own)
        }
        for scheme in ["Basic YTpi", "Bearer Negotiate", "Digest a", "NTL", "Neg", ""] {
            let own = OwnAuthorization(scheme.utf8.span)
            #expect(own == .request, "\(scheme)")
            #expect(use(open) { $0.ownAuthorization = own } == .common)
            #expect(use(binding) { $0.ownAuthorization = own } == .single)
        }
        logIn(slot("a"))
        let held = use(binding)
        for own in [OwnAuthorization.request, .connection] {
            #expect(use(binding) { $0.ownAuthorization = own } == held, "the session's replaces it")
        }
    }

    @Test("a session that an exchange tries has its own group, which it keeps when it is held")
    func tried() throws {
        let route = RouteSessions(slots: [slot("a"), slot("b")])
        logIn(slot("a"))
        let held = use(route)
        let key = slot("b").key
        let credential = CredentialUse(
            key: LatchKey(origin: key.origin, challenge: "b", credential: "b"),
            credential: Credential(name: "b", fields: ["password": Secret("b")]))
        _ = gate.change {
            $0.sessions.finish(key, with: .success(Session(unverified: credential, fields: [])), now: 0, chance: 0)
        }
        let unverified = try #require(gate.read { $0.sessions.session(of: key) })
        let ticket = ExchangeTicket(worker: 0, exchange: 1)
        _ = gate.change { $0.requestSession(key, rejected: nil, waiter: ticket, now: 0) }
        #expect(use(route) == held)
        let trying = ConnectionUse(
            of: ExchangeRequest(method: .get, framing: .none), carrying: route.fields(trying: [(1, unverified)]),
            at: route)
        guard case .bound(let group) = trying else { return #expect(trying != .common) }
        #expect(trying != held && !group.hasEnded(by: gate, now: 0))
        _ = gate.recordVerification(of: key, generation: unverified.generation, .accepted, by: ticket)
        #expect(use(route) == trying)
    }
}

@Suite("The pools of connections that servers may bind")
struct BoundPoolsTests {
    private let gate = SharedAttemptGate(now: { 0 })
    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank", port: 443), challenge: "a", credential: "a")

    private func group() -> ConnectionGroup? {
        _ = gate.change { $0.sessions.finish(key, with: .success(Session(fields: [])), now: 0, chance: 0) }
        return gate.held(key).flatMap { ConnectionGroup([(key, $0.generation)]) }
    }

    private func pool(_ pools: inout BoundPools, _ group: ConnectionGroup?) throws -> BoundPool? {
        pools.pool(of: try #require(group), by: gate, now: { 0 }) { BoundPool(idleStreams: IdleStreams(limit: 4)) }
    }

    @Test("a renewed session leaves no pool of the former one behind, without any other event")
    func renewed() throws {
        var pools = BoundPools()
        let first = group()
        weak let old = try pool(&pools, first)
        #expect(try pool(&pools, first) === old)
        #expect(old != nil)
        let new = try pool(&pools, group())
        #expect(new != nil && old == nil)
        #expect(try pool(&pools, first) !== new)
    }

    @Test("after their end the pools take no group")
    func ended() throws {
        var pools = BoundPools()
        let group = group()
        weak let pool = try pool(&pools, group)
        #expect(pool != nil)
        pools.end()
        #expect(pool == nil)
        #expect(try self.pool(&pools, group) == nil)
    }

    @Test("a closed driver leaves the loop, which no longer retains the driver")
    func driver() throws {
        let loop = try EventLoop()
        loop.turnOnce()
        var driver: CurlDriver? = try CurlDriver(loop: loop, connections: 4)
        weak let gone = driver
        let other = try CurlDriver(loop: loop, connections: 4)
        loop.turnOnce()
        driver?.close()
        driver = nil
        #expect(gone != nil, "the loop retains its hooks")
        loop.turnOnce()
        #expect(gone == nil)
        withExtendedLifetime(other) {}
    }
}
