// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import EventLoop
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("Sessions that hosts share")
struct FleetSessionsTests {
    private let key = FleetOfTests.key

    /// Has a fleet of hosts with these PINs, and ends it.
    private func withFleet(_ pins: [String], _ body: (FleetOfTests) async throws -> Void) async throws {
        let fleet = try FleetOfTests(pins)
        defer { fleet.end() }
        try await body(fleet)
    }

    /// The result of the host's login; a login of its own wins the token that `login` makes, once `end` is over.
    private func win(
        _ host: FleetOfTests.Host, isRenewal: Bool = false, until end: @escaping @Sendable () async -> Void = {},
        _ login: @escaping @Sendable () throws -> String
    ) async -> Result<Session, LoginFailure>? {
        await host.fleet.win(key, isRenewal: isRenewal, host.services) {
            // As a conversation does: the ledger knows what it used.
            host.services.ledger?.note(key, ["pin": Self.version(host)])
            await end()
            do {
                return .success(FleetOfTests.session(try login()))
            } catch {
                return .failure(error as? LoginFailure ?? LoginFailure(.failed, challenge: "bank-pin", detail: "?"))
            }
        }
    }

    private static func version(_ host: FleetOfTests.Host) -> [UInt8] {
        let credential = Credential(name: "pin", fields: host.credentials.value["pin"] ?? [:])
        return Array("local ".utf8) + FleetOfTests.canonical(credential).revealBytes()
    }

    @Test("are won by one of those who want them at once, and used by all")
    func atOnce() async throws {
        try await withFleet(["1234", "1234", "1234"]) { fleet in
            let logins = Mutable(0)
            let tokens = await withTaskGroup(of: String?.self) { group in
                for host in fleet.hosts {
                    group.addTask {
                        // A host that wants one only when it has the others' would want another.
                        await FleetOfTests.token(
                            of: win(host, until: { await fleet.engine.isWanted(by: 3) }) {
                                logins.value += 1
                                return "one"
                            })
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(tokens == ["one", "one", "one"])
            #expect(logins.value == 1)
            #expect(fleet.hosts.map(\.fleet.figures.published).reduce(0, +) == 1)
        }
    }

    @Test("a login that comes while the engine is being made waits for it")
    func early() async throws {
        let gate = Signal()
        let fleet = try FleetOfTests(["1234", "1234"], until: gate)
        defer { fleet.end() }
        let logins = Mutable<[Bool]>([])
        let begun = fleet.hosts.map { _ in Signal() }
        let results = zip(fleet.hosts, begun).map { host, begun in
            Task {
                begun.set()
                return await win(host, until: { await fleet.engine.isWanted(by: 2) }) {
                    logins.value += [gate.isSet]
                    return "one"
                }
            }
        }
        for begun in begun { await begun.wait() }
        gate.set()
        for result in results { #expect(await FleetOfTests.token(of: result.value) == "one") }
        #expect(logins.value == [true])
    }

    @Test("are taken up by a host that did not ask, in the place of what it holds")
    func adopted() async throws {
        try await withFleet(["1234", "1234"]) { fleet in
            let directory = fleet.hosts[1].services.gate
            for token in ["first", "second"] {
                #expect(await FleetOfTests.token(of: win(fleet.hosts[0]) { token }) == token)
                #expect(
                    await eventually {
                        directory.held(key)?.session.fields == FleetOfTests.session(token).fields
                    }, "\(token)")
            }
        }
    }

    @Test("are not used where the credential is another, until it is the same")
    func otherCredential() async throws {
        try await withFleet(["1234", "4321"]) { fleet in
            #expect(await FleetOfTests.token(of: win(fleet.hosts[0]) { "new" }) == "new")
            let other = fleet.hosts[1]
            #expect(await eventually { other.fleet.figures.unusable >= 1 })
            #expect(other.services.gate.held(key) == nil)
            other.credentials.value = ["pin": ["pin": Secret("1234")]]
            #expect(await FleetOfTests.token(of: win(other) { "own" }) == "new")
        }
    }

    @Test("whose login failed are not tried by the next, which learns why")
    func failure() async throws {
        try await withFleet(["1234", "1234"]) { fleet in
            let failure = LoginFailure(.timedOut, challenge: "bank-pin", detail: "The server is silent.")
            _ = await win(fleet.hosts[0]) { throw failure }
            let logins = Mutable(0)
            let result = await win(fleet.hosts[1]) {
                logins.value += 1
                return "never"
            }
            guard case .failure(let told) = result else {
                Issue.record("\(String(describing: result))")
                return
            }
            #expect(told.code == .timedOut && told.detail == failure.detail && logins.value == 0)
        }
    }

    @Test("a failure that concerns one host alone lets the next one try")
    func ownFailure() async throws {
        try await withFleet(["1234", "1234"]) { fleet in
            _ = await win(fleet.hosts[0]) { throw LoginFailure(.noCredential, challenge: "bank-pin", detail: "None.") }
            #expect(await FleetOfTests.token(of: win(fleet.hosts[1]) { "mine" }) == "mine")
        }
    }

    @Test("a login that would end at a closed latch waits for no other host")
    func latched() async throws {
        try await withFleet(["9999", "1234"]) { fleet in
            let host = fleet.hosts[0]
            let (_, first) = await logIn(at: host)
            #expect(first == .rejected)
            let before = host.fleet.figures.leases
            for _ in 0..<3 { #expect(await logIn(at: host).failure == .latched) }
            #expect(host.fleet.figures.leases == before)
            // Another value is another matter.
            host.credentials.value = ["pin": ["pin": Secret("1234")]]
            // For a moment all hosts are told of the rejection.
            #expect(await eventually { await logIn(at: host).token == "right" })
            #expect(host.fleet.figures.leases == before + 1)
        }
    }

    /// The session that a host wins by its client, or why it does not; the server rejects 9999.
    private func logIn(at host: FleetOfTests.Host) async -> (token: String?, failure: LoginFailure.Code?) {
        let login = Authenticator(
            name: "bank-pin", trigger: .ahead, isAhead: true, key: key, credentials: ["pin"],
            makeLogin: { _ in PINLogin(key: LatchKey(origin: key.origin, challenge: "bank-pin", credential: "pin")) })
        let plan = UpstreamPlan(
            name: "bank", base: WebURL(origin: key.origin, path: "/"), connections: ConnectionSettings(),
            logins: Authenticators())
        let race = Race<SessionTable<ExchangeTicket>.Outcome>()
        let (loop, runtime) = (host.thread.loop, host.runtime)
        loop.execute {
            runtime?.value.logins.request(
                RouteSessions.Slot(login: login, scope: .empty), rejected: nil, at: plan, challenge: nil,
                cause: LoginCause(.command)
            ) { race.end($0) }
        }
        switch await withCheckedContinuation({ race.begin($0) }) {
        case .failed(let failure): return (nil, failure.code)
        case .won(let held): return (FleetOfTests.token(of: .success(held.session)), nil)
        default: return (nil, nil)
        }
    }

    @Test("a renewal is left to the host that is at it")
    func renewal() async throws {
        try await withFleet(["1234", "1234"]) { fleet in
            _ = await win(fleet.hosts[0]) { "first" }
            #expect(await eventually { fleet.hosts[1].services.gate.held(key) != nil })
            let end = Signal()
            async let renewed = win(fleet.hosts[0], isRenewal: true, until: { await end.wait() }) { "second" }
            #expect(await eventually { fleet.hosts[0].fleet.figures.leases == 2 })
            let left = await win(fleet.hosts[1], isRenewal: true) { "third" }
            #expect(left == nil)
            end.set()
            #expect(await FleetOfTests.token(of: renewed) == "second")
            #expect(
                await eventually {
                    fleet.hosts[1].services.gate.held(key)?.session.fields == FleetOfTests.session("second").fields
                })
        }
    }

    @Test("a session dropped on one host is dropped on all")
    func dropped() async throws {
        try await withFleet(["1234", "1234"]) { fleet in
            _ = await win(fleet.hosts[0]) { "first" }
            let other = fleet.hosts[1].services.gate
            #expect(await eventually { other.held(key) != nil })
            fleet.hosts[0].fleet.drop([key])
            #expect(await eventually { other.held(key) == nil })
            #expect(await FleetOfTests.token(of: win(fleet.hosts[1]) { "second" }) == "second")
        }
    }
}

/// Looks the PIN up, which a server rejects if it is 9999.
private struct PINLogin: SessionLogin {
    let key: LatchKey

    func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.look(up: key, in: conversation)
        if use.credential["pin"] == Secret("9999") { throw use.reject(.rejected, serverWait: nil, in: conversation) }
        return FleetOfTests.session("right")
    }
}
