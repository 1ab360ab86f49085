// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import SharedSessions

@Suite("Connections to a session store", .timeLimit(.minutes(10)))
struct RedisStoreConnectionTests {
    private let clock = ManualLoopClock.ringing()
    private let offer = StoreRequest.offer(after: 0, session: [1, 2, 3], lifetime: .seconds(60))

    @Test("a store is used over TCP, with user, password and a database of its own")
    func password() async throws {
        let server = try await RedisServer(
            .plain,
            [
                "--user", "default", "off", "--user", "countersign", "on", ">open sesame", "~{blue}:*",
                "resetchannels", "&{blue}:*", "+@all", "-@admin", "-@dangerous", "--user", "root", "on", "nopass", "~*",
                "+@all",
            ])
        var plan = RedisStorePlan(endpoint: .host("127.0.0.1", port: server.port, isSecure: false))
        (plan.database, plan.prefix, plan.credential) = (3, "blue", "session store")
        let rig = try await RedisStoreRig(plan, credential: ["username": "countersign", "password": "open sesame"])
        await rig.follow("bank")
        #expect(await rig.events.next() == .connected)
        guard case .done? = await rig.ask(offer) else {
            Issue.record("not done")
            return
        }
        let keys = try await server.command(
            "--user", "root", "--pass", "x", "--no-auth-warning", "-n", "3", "KEYS", "*")
        #expect(keys.contains("{blue}:session:bank"))
        // Keys with another prefix are not allowed.
        plan.prefix = "red"
        let other = try await RedisStoreRig(plan, credential: ["username": "countersign", "password": "open sesame"])
        #expect(await other.reasonAway().contains("(NOPERM)"))
    }

    @Test("a password without a user is accepted, and each refusal of a credential has its reason")
    func refusals() async throws {
        let server = try await RedisServer(.none, ["--requirepass", "open sesame"])
        var plan = RedisStorePlan(server)
        #expect(try await RedisStoreRig(plan).reasonAway().contains("(NOAUTH)"))
        plan.credential = "session store"
        let rig = try await RedisStoreRig(plan, credential: ["password": "open sesame"])
        #expect(await rig.events.next() == .connected)
        let wrong = try await RedisStoreRig(plan, credential: ["password": "closed sesame"])
        let reason = await wrong.reasonAway()
        #expect(reason.contains("(WRONGPASS)") && !reason.contains("sesame"))
        #expect(await wrong.ask(offer) == nil)
        #expect(await wrong.isThere == false)
        #expect(
            try await RedisStoreRig(plan).reasonAway()
                == "its credential session store cannot be used: no source knows it")
        #expect(
            try await RedisStoreRig(plan, credential: ["key": "k"]).reasonAway()
                == "its credential session store cannot be used: it has no field `password`")
        // A session store that does not know the command repeats its arguments.
        let renamed = try await RedisServer(.none, ["--rename-command", "AUTH", ""])
        var other = RedisStorePlan(renamed)
        other.credential = "session store"
        let told = try await RedisStoreRig(other, credential: ["password": "open sesame"]).reasonAway()
        #expect(told.contains("(ERR)") && !told.contains("sesame"))
    }

    @Test("a store is used over TLS, with its certificate checked and one of ours")
    func tls() async throws {
        try await StoreCertificates.make()
        let server = try await RedisServer(.secure(certificates: StoreCertificates.folder, clients: true))
        var plan = RedisStorePlan(endpoint: .host("localhost", port: server.port, isSecure: true))
        #expect(
            try await RedisStoreRig(plan).reasonAway().hasPrefix("its certificate is from an authority that is not"))
        plan.connections.authorities = Blob(StoreCertificates.bytes("ca.pem").span)
        // In TLS 1.3 the refusal comes after the handshake.
        #expect(
            try await RedisStoreRig(plan).reasonAway().hasSuffix("it may want a client certificate (`sessions.tls`)"))
        plan.connections.certificate = Blob(StoreCertificates.bytes("client.pem").span)
        plan.connections.key = Blob(StoreCertificates.bytes("client.key").span)
        let rig = try await RedisStoreRig(plan)
        let news = await rig.events.next()
        #expect(news == .connected)
        // More than one record and one window, in both directions.
        let session = [UInt8](repeating: 7, count: 900_000)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    let reply = await rig.ask(
                        .offer(after: 0, session: session, lifetime: .seconds(60)), for: "\(number)")
                    guard case .done(let generation)? = reply else {
                        Issue.record("\(String(describing: reply))")
                        return
                    }
                    #expect(
                        await rig.ask(.fetch(after: 0), for: "\(number)") == .session(generation: generation, session))
                }
            }
        }
    }

    @Test("a killed store is unreachable, and comes back with the data that it kept")
    func restart() async throws {
        let server = try await RedisServer(keepsData: true)
        let plan = RedisStorePlan(server)
        let rig = try await RedisStoreRig(plan, clock: clock)
        await rig.follow("bank")
        #expect(await rig.events.next() == .connected)
        guard case .done(let generation)? = await rig.ask(offer) else {
            Issue.record("not done")
            return
        }
        #expect(await rig.events.next() == .sessionChanged(name: "bank", generation: generation))
        server.kill()
        #expect(!(await rig.reasonAway()).isEmpty)
        #expect(await rig.isThere == false)
        #expect(await rig.ask(.fetch(after: 0)) == nil)
        try await server.start()
        await clock.pass(plan.firstPause * 1.5)
        #expect(await rig.events.next() == .connected)
        #expect(await rig.isThere)
        #expect(await rig.ask(.fetch(after: 0)) == .session(generation: generation, [1, 2, 3]))
        _ = await rig.ask(.drop(generation: generation))
        #expect(await rig.events.next() == .sessionChanged(name: "bank", generation: generation))
    }

    @Test("a store that lost its data gives no generation out twice")
    func dataLoss() async throws {
        let server = try await RedisServer()
        let plan = RedisStorePlan(server)
        let rig = try await RedisStoreRig(plan, clock: clock)
        let generation = try #require(await rig.granted(LeaseToken("a")))
        #expect(await rig.close([SharedLatch(digest: "d", challenge: "c", latch: .closed)]))
        let count = try #require(await rig.latches()?.count)
        server.kill()
        while await rig.reasonAway().isEmpty {}
        try await server.start()
        await clock.pass(plan.firstPause * 1.5)
        while await rig.events.next() != .connected {}
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
        // The node that was logging in publishes, as no other node has requested a lease since.
        let publish = StoreRequest.publish(
            token: LeaseToken("a"), generation: generation, session: [1], lifetime: .seconds(60))
        #expect(await rig.ask(publish) == .done(generation: generation))
        #expect(try #require(await rig.granted(LeaseToken("b"), after: generation)) > generation)
        #expect(await rig.ask(publish) == .done(generation: generation))
        #expect(await rig.close([SharedLatch(digest: "d", challenge: "c", latch: .closed)]))
        #expect(try #require(await rig.latches()?.count) > count)
    }

    @Test("a hanging store is unreachable after the reply timeout, and pending requests are answered with nil")
    func hang() async throws {
        let server = try await RedisServer()
        let plan = RedisStorePlan(server)
        let rig = try await RedisStoreRig(plan, clock: clock)
        #expect(await rig.events.next() == .connected)
        server.signal(SIGSTOP)
        let replies = await rig.begin(.fetch(after: 0), times: 2)
        await clock.pass(plan.replyTimeout)
        #expect(await replies.value == [nil, nil])
        #expect(await rig.reasonAway() == "it does not answer within 2.0 seconds")
        server.signal(SIGCONT)
        await clock.pass(plan.firstPause * 1.5)
        while await rig.events.next() != .connected {}
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
    }

    @Test("thousands of subscriptions of one turn work, and again after a restart")
    func thousands() async throws {
        let server = try await RedisServer()
        let plan = RedisStorePlan(server)
        let rig = try await RedisStoreRig(plan, clock: clock)
        #expect(await rig.events.next() == .connected)
        await rig.with { sessionStore in for number in 0..<5_000 { sessionStore.subscribe(to: "\(number)") } }
        while try await server.command("PUBSUB", "NUMSUB", "{countersign}:news:4999").contains("0") {}
        server.kill()
        #expect(!(await rig.reasonAway()).isEmpty)
        try await server.start()
        await clock.pass(plan.firstPause * 1.5)
        #expect(await rig.events.next() == .connected)
        for name in ["0", "2500", "4999"] {
            guard case .done(let generation)? = await rig.ask(offer, for: name) else {
                Issue.record("not done")
                return
            }
            #expect(await rig.events.next() == .sessionChanged(name: name, generation: generation))
        }
    }

    @Test("a silent store is noticed without a request")
    func keepAlive() async throws {
        let server = try await RedisServer()
        let plan = RedisStorePlan(server)
        let rig = try await RedisStoreRig(plan, clock: clock)
        #expect(await rig.events.next() == .connected)
        server.signal(SIGSTOP)
        await clock.pass(plan.keepAlive)
        await clock.pass(plan.replyTimeout)
        #expect(await rig.reasonAway() == "it does not answer within 2.0 seconds")
        server.signal(SIGCONT)
    }

    @Test("a request before the first connection waits for it, for the reply timeout at most")
    func early() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
        server.signal(SIGSTOP)
        let plan = RedisStorePlan(server)
        let late = try await RedisStoreRig(plan, clock: clock)
        let replies = await late.begin(.fetch(after: 0))
        await clock.pass(plan.replyTimeout)
        #expect(await replies.value == [nil])
        #expect(await late.isThere == false)
        server.signal(SIGCONT)
        await clock.pass(plan.firstPause * 1.5)
        while await late.events.next() != .connected {}
        await late.with { $0.close() }
        #expect(await late.ask(.fetch(after: 0)) == nil)
    }

    @Test(
        "a peer that is not a session store is reported and harmless",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n", "*2147483647\r\n", "$9223372036854775807\r\n",
            "+PONG\r\n+PONG\r\n+PONG\r\n", "-LOADING x\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
            "\0", "",
        ], [true, false])
    func garbage(answer: String, closes: Bool) async throws {
        let peer = GarbagePeer(Array(answer.utf8), thenCloses: closes)
        var plan = RedisStorePlan(endpoint: .host("127.0.0.1", port: peer.port, isSecure: false))
        plan.replyTimeout = .milliseconds(300)
        let rig = try await RedisStoreRig(plan)
        #expect(await rig.ask(.fetch(after: 0)) == nil)
        #expect(!(await rig.reasonAway()).isEmpty)
        #expect(await rig.isThere == false)
    }

    @Test("an address where nothing listens is reported")
    func nothing() async throws {
        let plan = RedisStorePlan(endpoint: .socket("/nonexistent/socket"))
        #expect(try await RedisStoreRig(plan).reasonAway() == "it refuses the connection, or nothing listens there")
        let port = RedisStorePlan(endpoint: .host("127.0.0.1", port: Ports.next(), isSecure: false))
        #expect(try await RedisStoreRig(port).reasonAway() == "it refuses the connection, or nothing listens there")
    }
}
