// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import ChallengeHandling
import Curl
import EventLoop
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import ChallengeClient
@testable import SharedSessions

@Suite("Sessions that nodes share")
struct SessionSharingTests {
    private let key = NodesOfTests.key

    /// Runs `body` with a group of nodes with these PINs, and ends the group.
    private func withNodes(_ pins: [String], _ body: (NodesOfTests) async throws -> Void) async throws {
        let nodes = try NodesOfTests(pins)
        defer { nodes.end() }
        try await body(nodes)
    }

    /// Returns the result of the node's login. If the node logs in itself, it obtains the token of `login`, after `end`.
    private func logIn(
        _ node: NodesOfTests.Node, in generation: UInt64 = 0, isRenewal: Bool = false, expiresAt: Int64? = nil,
        until end: @escaping @Sendable () async -> Void = {},
        _ login: @escaping @Sendable () throws -> String
    ) async -> Result<Session, LoginFailure>? {
        await node.sharing.logIn(key, in: generation, isRenewal: isRenewal) {
            // Records the value used, as a conversation does.
            node.services.credentialVersions?.record(key, ["pin": Self.version(node)])
            await end()
            do {
                return .success(NodesOfTests.session(try login(), until: expiresAt))
            } catch {
                return .failure(error as? LoginFailure ?? LoginFailure(.failed, challenge: "bank-pin", detail: "?"))
            }
        }
    }

    private static func version(_ node: NodesOfTests.Node) -> [UInt8] {
        let credential = Credential(name: "pin", fields: node.credentials.value["pin"] ?? [:])
        return Array("local ".utf8) + NodesOfTests.canonical(credential).revealBytes()
    }

    @Test("a session that nodes need at once is established by one and used by all")
    func atOnce() async throws {
        try await withNodes(["1234", "1234", "1234"]) { nodes in
            let logins = Mutable(0)
            let tokens = await withTaskGroup(of: String?.self) { group in
                for node in nodes.nodes {
                    group.addTask {
                        // A node that asks again once it has the others' session would request another one.
                        await NodesOfTests.token(
                            of: logIn(node, until: { await nodes.sessionStore.isWanted(by: 3) }) {
                                logins.value += 1
                                return "one"
                            })
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(tokens == ["one", "one", "one"])
            #expect(logins.value == 1)
            #expect(nodes.nodes.map(\.sharing.statistics.published).reduce(0, +) == 1)
        }
    }

    @Test("a login waits while the session store is being made")
    func early() async throws {
        let gate = Signal()
        let nodes = try NodesOfTests(["1234", "1234"], until: gate)
        defer { nodes.end() }
        let logins = Mutable<[Bool]>([])
        let begun = nodes.nodes.map { _ in Signal() }
        let results = zip(nodes.nodes, begun).map { node, begun in
            Task {
                begun.set()
                return await logIn(node, until: { await nodes.sessionStore.isWanted(by: 2) }) {
                    logins.value += [gate.isSet]
                    return "one"
                }
            }
        }
        for begun in begun { await begun.wait() }
        gate.set()
        for result in results { #expect(await NodesOfTests.token(of: result.value) == "one") }
        #expect(logins.value == [true])
    }

    @Test("a node adopts a later session without a request, and replaces its own")
    func adopted() async throws {
        try await withNodes(["1234", "1234"]) { nodes in
            let directory = nodes.nodes[1].services.gate
            for token in ["first", "second"] {
                #expect(await NodesOfTests.token(of: logIn(nodes.nodes[0]) { token }) == token)
                #expect(
                    await eventually {
                        directory.held(key)?.session.fields == NodesOfTests.session(token).fields
                    }, "\(token)")
            }
        }
    }

    @Test("a session is not used by a node with another credential until the credentials are equal")
    func otherCredential() async throws {
        try await withNodes(["1234", "4321"]) { nodes in
            #expect(await NodesOfTests.token(of: logIn(nodes.nodes[0]) { "new" }) == "new")
            let other = nodes.nodes[1]
            #expect(await eventually { other.sharing.statistics.unusable >= 1 })
            #expect(other.services.gate.held(key) == nil)
            other.credentials.value = ["pin": ["pin": Secret("1234")]]
            let result = await logIn(other) { "own" }
            #expect(NodesOfTests.token(of: result) == "new")
            let session = try #require(result).get()
            #expect(session.isTakenOver)
        }
    }

    @Test("a session that could not be adopted is not a login's result once it has expired")
    func expiredMeanwhile() async throws {
        try await withNodes(["1234", "4321"]) { nodes in
            let other = nodes.nodes[1]
            let end = other.clock.value + 60_000
            #expect(await NodesOfTests.token(of: logIn(nodes.nodes[0], expiresAt: end) { "new" }) == "new")
            #expect(await eventually { other.sharing.statistics.unusable >= 1 })
            other.credentials.value = ["pin": ["pin": Secret("1234")]]
            other.clock.value = end
            #expect(await NodesOfTests.token(of: logIn(other) { "own" }) == "own")
        }
    }

    @Test("a failed login is not repeated by the next node, which gets the reason")
    func failure() async throws {
        try await withNodes(["1234", "1234"]) { nodes in
            let failure = LoginFailure(.timedOut, challenge: "bank-pin", detail: "The server is silent.")
            _ = await logIn(nodes.nodes[0]) { throw failure }
            let logins = Mutable(0)
            let result = await logIn(nodes.nodes[1]) {
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

    @Test("a failure that concerns one node lets the next one log in")
    func ownFailure() async throws {
        try await withNodes(["1234", "1234"]) { nodes in
            _ = await logIn(nodes.nodes[0]) {
                throw LoginFailure(.noCredential, challenge: "bank-pin", detail: "None.")
            }
            #expect(await NodesOfTests.token(of: logIn(nodes.nodes[1]) { "mine" }) == "mine")
        }
    }

    @Test("a login that would end at a closed latch requests no lease")
    func latched() async throws {
        try await withNodes(["9999", "1234"]) { nodes in
            let node = nodes.nodes[0]
            let (_, first) = await logIn(at: node)
            #expect(first == .rejected)
            let before = node.sharing.statistics.leases
            for _ in 0..<3 { #expect(await logIn(at: node).failure == .latched) }
            #expect(node.sharing.statistics.leases == before)
            // Another value is not affected.
            node.credentials.value = ["pin": ["pin": Secret("1234")]]
            // For a short time all nodes get the rejection.
            #expect(await eventually { await logIn(at: node).token == "right" })
            #expect(node.sharing.statistics.leases == before + 1)
        }
    }

    @Test("a latch that is opened while a login ends at it lets nothing be sent without a lease")
    func openedMeanwhile() async throws {
        try await withNodes(["9999", "1234"]) { nodes in
            let node = nodes.nodes[0]
            #expect(await logIn(at: node).failure == .rejected)
            let (lookups, leases) = (Mutable(0), node.sharing.statistics.leases)
            node.onLookup.value = {
                lookups.value += 1
                if lookups.value == 2 { node.services.gate.unlatch("bank-pin") }
            }
            #expect(await logIn(at: node).failure == .latched)
            #expect(lookups.value == 2 && node.sharing.statistics.leases == leases)
            // For a short time all nodes get the rejection.
            #expect(await eventually { await logIn(at: node).failure == .rejected })
        }
    }

    @Test("a wrong value that two nodes need for two scopes at once is sent by one of them")
    func scopes() async throws {
        try await withNodes(["9999", "9999"]) { nodes in
            let sent = Mutable(0)
            let server: @Sendable () async -> Void = {
                sent.value += 1
                await nodes.sessionStore.isWanted(by: 2)
            }
            async let read = logIn(at: nodes.nodes[0], scope: "read", server)
            async let write = logIn(at: nodes.nodes[1], scope: "write", server)
            #expect(await Set([read.failure, write.failure]) == [.rejected, .latched])
            #expect(sent.value == 1)
        }
    }

    /// Returns the result of a node's login by its client. The server rejects 9999, after `server`.
    private func logIn(
        at node: NodesOfTests.Node, scope: String = "", _ server: @escaping @Sendable () async -> Void = {}
    ) async -> (token: String?, failure: LoginFailure.Code?) {
        let login = Authenticator(
            name: "bank-pin", trigger: .ahead, isAhead: true, key: key, credentials: ["pin"],
            makeLogin: { _ in
                PINLogin(key: LatchKey(origin: key.origin, challenge: "bank-pin", credential: "pin"), server: server)
            })
        let plan = UpstreamPlan(
            name: "bank", base: WebURL(origin: key.origin, path: "/"), connections: ConnectionSettings(),
            logins: Authenticators()
        ).asking(node.sources)
        let oneShot = OneShot<SessionTable<ExchangeTicket>.Outcome>()
        let (loop, runtime) = (node.thread.loop, node.runtime)
        loop.execute {
            runtime?.value.logins.request(
                RouteSessions.Slot(login: login, scope: Scope(text: scope)), rejected: nil, at: plan, challenge: nil,
                cause: LoginCause(.command)
            ) { oneShot.finish($0) }
        }
        switch await oneShot.wait() {
        case .failed(let failure): return (nil, failure.code)
        case .established(let held): return (NodesOfTests.token(of: .success(held.session)), nil)
        default: return (nil, nil)
        }
    }

    @Test(
        "a login of a configuration shares under the names of that configuration, before the reload is over and after it"
    )
    func generations() async throws {
        try await withNodes(["1234", "1234"]) { nodes in
            let (one, two) = (nodes.nodes[0], nodes.nodes[1])
            #expect(await NodesOfTests.token(of: logIn(two) { "old" }) == "old")
            #expect(await eventually { one.services.gate.held(key) != nil })
            let plan = NodesOfTests.plan("later", PlanSources(one.sources.credentials, generation: 1))
            one.sharing.prepare(plan)
            #expect(one.sharing.isShared(key, in: 0) && one.sharing.isShared(key, in: 1))
            // The other node's session is of the former configuration.
            #expect(await NodesOfTests.token(of: logIn(one, in: 1) { "new" }) == "new")
            one.sharing.serve(plan)
            // A login of the former configuration that ends now reaches the nodes that still have that configuration.
            #expect(await NodesOfTests.token(of: logIn(one, in: 0) { "newer" }) == "newer")
            #expect(
                await eventually {
                    two.services.gate.held(key)?.session.fields == NodesOfTests.session("newer").fields
                })
            // A configuration that was replaced long ago shares nothing.
            #expect(!one.sharing.isShared(key, in: 7))
            #expect(await NodesOfTests.token(of: logIn(one, in: 7) { "own" }) == "own")
        }
    }

    @Test("a renewal is left to the node that renews already")
    func renewal() async throws {
        try await withNodes(["1234", "1234"]) { nodes in
            _ = await logIn(nodes.nodes[0]) { "first" }
            #expect(await eventually { nodes.nodes[1].services.gate.held(key) != nil })
            let end = Signal()
            async let renewed = logIn(nodes.nodes[0], isRenewal: true, until: { await end.wait() }) { "second" }
            #expect(await eventually { nodes.nodes[0].sharing.statistics.leases == 2 })
            let left = await logIn(nodes.nodes[1], isRenewal: true) { "third" }
            #expect(left == nil)
            end.set()
            #expect(await NodesOfTests.token(of: renewed) == "second")
            #expect(
                await eventually {
                    nodes.nodes[1].services.gate.held(key)?.session.fields == NodesOfTests.session("second").fields
                })
        }
    }

    @Test("a session dropped on one node is dropped on all")
    func dropped() async throws {
        try await withNodes(["1234", "1234"]) { nodes in
            _ = await logIn(nodes.nodes[0]) { "first" }
            let other = nodes.nodes[1].services.gate
            #expect(await eventually { other.held(key) != nil })
            nodes.nodes[0].sharing.dropSessions(of: [key])
            #expect(await eventually { other.held(key) == nil })
            #expect(await NodesOfTests.token(of: logIn(nodes.nodes[1]) { "second" }) == "second")
        }
    }
}

/// Login that looks the PIN up; the server rejects 9999.
private struct PINLogin: SessionLogin {
    let key: LatchKey
    let server: @Sendable () async -> Void

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.lookUp(key, in: conversation)
        await server()
        if use.credential["pin"] == Secret("9999") {
            throw await use.reject(.rejected, serverWait: nil, in: conversation)
        }
        return NodesOfTests.session("right")
    }
}
