// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("Connections to a session engine", .timeLimit(.minutes(10)))
struct RedisEngineConnectionTests {
    private let clock = ManualLoopClock.ringing()
    private let offer = EngineRequest.offer(after: 0, session: [1, 2, 3], life: .seconds(60))

    @Test("by TCP, with a user and a password, in a database of its own")
    func password() async throws {
        let server = try await RedisServer(
            .plain,
            [
                "--user", "default", "off", "--user", "countersign", "on", ">open sesame", "~{blue}:*",
                "resetchannels", "&{blue}:*", "+@all", "-@admin", "-@dangerous", "--user", "root", "on", "nopass", "~*",
                "+@all",
            ])
        var plan = RedisEnginePlan(place: .host("127.0.0.1", port: server.port, isSecure: false))
        (plan.database, plan.prefix, plan.credential) = (3, "blue", "engine")
        let rig = try await EngineRig(plan, credential: ["username": "countersign", "password": "open sesame"])
        await rig.follow("bank")
        #expect(await rig.news.next() == .connected)
        guard case .done? = await rig.ask(offer) else {
            Issue.record("not done")
            return
        }
        let keys = try await server.command(
            "--user", "root", "--pass", "x", "--no-auth-warning", "-n", "3", "KEYS", "*")
        #expect(keys.contains("{blue}:session:bank"))
        // Of another prefix, it may not.
        plan.prefix = "red"
        let other = try await EngineRig(plan, credential: ["username": "countersign", "password": "open sesame"])
        #expect(await other.reasonAway().contains("(NOPERM)"))
    }

    @Test("a password without a user, and each way in which it is refused")
    func refusals() async throws {
        let server = try await RedisServer(.none, ["--requirepass", "open sesame"])
        var plan = RedisEnginePlan(server)
        #expect(try await EngineRig(plan).reasonAway().contains("(NOAUTH)"))
        plan.credential = "engine"
        let rig = try await EngineRig(plan, credential: ["password": "open sesame"])
        #expect(await rig.news.next() == .connected)
        let wrong = try await EngineRig(plan, credential: ["password": "closed sesame"])
        let reason = await wrong.reasonAway()
        #expect(reason.contains("(WRONGPASS)") && !reason.contains("sesame"))
        #expect(await wrong.ask(offer) == nil)
        #expect(await wrong.isThere == false)
        #expect(
            try await EngineRig(plan).reasonAway() == "its credential engine cannot be used: no source knows it")
        #expect(
            try await EngineRig(plan, credential: ["key": "k"]).reasonAway()
                == "its credential engine cannot be used: it has no field `password`")
        // An engine that does not know the command repeats what it was given.
        let renamed = try await RedisServer(.none, ["--rename-command", "AUTH", ""])
        var other = RedisEnginePlan(renamed)
        other.credential = "engine"
        let told = try await EngineRig(other, credential: ["password": "open sesame"]).reasonAway()
        #expect(told.contains("(ERR)") && !told.contains("sesame"))
    }

    @Test("within TLS, by a certificate that is checked, and one of ours")
    func tls() async throws {
        try await EngineCertificates.make()
        let server = try await RedisServer(.secure(certificates: EngineCertificates.folder, clients: true))
        var plan = RedisEnginePlan(place: .host("localhost", port: server.port, isSecure: true))
        #expect(
            try await EngineRig(plan).reasonAway().hasPrefix("its certificate comes from an authority that is not"))
        plan.connections.authorities = Blob(EngineCertificates.bytes("ca.pem").span)
        // It says no after the handshake, in TLS 1.3.
        #expect(try await EngineRig(plan).reasonAway().hasSuffix("it may want a certificate of ours (`sessions.tls`)"))
        plan.connections.certificate = Blob(EngineCertificates.bytes("client.pem").span)
        plan.connections.key = Blob(EngineCertificates.bytes("client.key").span)
        let rig = try await EngineRig(plan)
        let news = await rig.news.next()
        #expect(news == .connected)
        // More than a record and a window at once, both ways.
        let session = [UInt8](repeating: 7, count: 900_000)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    let reply = await rig.ask(.offer(after: 0, session: session, life: .seconds(60)), for: "\(number)")
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

    @Test("an engine that is killed is away, and is back with what it has kept")
    func restart() async throws {
        let server = try await RedisServer(keepsData: true)
        let plan = RedisEnginePlan(server)
        let rig = try await EngineRig(plan, clock: clock)
        await rig.follow("bank")
        #expect(await rig.news.next() == .connected)
        guard case .done(let generation)? = await rig.ask(offer) else {
            Issue.record("not done")
            return
        }
        #expect(await rig.news.next() == .session(name: "bank", generation: generation))
        server.kill()
        #expect(!(await rig.reasonAway()).isEmpty)
        #expect(await rig.isThere == false)
        #expect(await rig.ask(.fetch(after: 0)) == nil)
        try await server.start()
        await clock.pass(plan.firstPause * 1.5)
        #expect(await rig.news.next() == .connected)
        #expect(await rig.isThere)
        #expect(await rig.ask(.fetch(after: 0)) == .session(generation: generation, [1, 2, 3]))
        _ = await rig.ask(.drop(generation: generation))
        #expect(await rig.news.next() == .session(name: "bank", generation: generation))
    }

    @Test("an engine that has lost its data gives no generation out twice")
    func dataLoss() async throws {
        let server = try await RedisServer()
        let plan = RedisEnginePlan(server)
        let rig = try await EngineRig(plan, clock: clock)
        let generation = try #require(await rig.granted(LeaseToken("a")))
        #expect(await rig.close([SharedLatch(digest: "d", challenge: "c", latch: .closed)]))
        let count = try #require(await rig.latches()?.count)
        server.kill()
        while await rig.reasonAway().isEmpty {}
        try await server.start()
        await clock.pass(plan.firstPause * 1.5)
        while await rig.news.next() != .connected {}
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
        // Who was logging in meanwhile publishes, as nobody else has come.
        let publish = EngineRequest.publish(
            token: LeaseToken("a"), generation: generation, session: [1], life: .seconds(60))
        #expect(await rig.ask(publish) == .done(generation: generation))
        #expect(try #require(await rig.granted(LeaseToken("b"), after: generation)) > generation)
        #expect(await rig.ask(publish) == .done(generation: generation))
        #expect(await rig.close([SharedLatch(digest: "d", challenge: "c", latch: .closed)]))
        #expect(try #require(await rig.latches()?.count) > count)
    }

    @Test("an engine that hangs is away when an answer is due, and what waits for it is answered with nothing")
    func hang() async throws {
        let server = try await RedisServer()
        let plan = RedisEnginePlan(server)
        let rig = try await EngineRig(plan, clock: clock)
        #expect(await rig.news.next() == .connected)
        server.signal(SIGSTOP)
        let replies = await rig.begin(.fetch(after: 0), times: 2)
        await clock.pass(plan.patience)
        #expect(await replies.value == [nil, nil])
        #expect(await rig.reasonAway() == "it does not answer within 2.0 seconds")
        server.signal(SIGCONT)
        await clock.pass(plan.firstPause * 1.5)
        while await rig.news.next() != .connected {}
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
    }

    @Test("follows thousands of sessions, also those that were named in one turn, and again after a restart")
    func thousands() async throws {
        let server = try await RedisServer()
        let plan = RedisEnginePlan(server)
        let rig = try await EngineRig(plan, clock: clock)
        #expect(await rig.news.next() == .connected)
        await rig.with { engine in for number in 0..<5_000 { engine.follow("\(number)") } }
        while try await server.command("PUBSUB", "NUMSUB", "{countersign}:news:4999").contains("0") {}
        server.kill()
        #expect(!(await rig.reasonAway()).isEmpty)
        try await server.start()
        await clock.pass(plan.firstPause * 1.5)
        #expect(await rig.news.next() == .connected)
        for name in ["0", "2500", "4999"] {
            guard case .done(let generation)? = await rig.ask(offer, for: name) else {
                Issue.record("not done")
                return
            }
            #expect(await rig.news.next() == .session(name: name, generation: generation))
        }
    }

    @Test("an engine that falls silent is found out without a request")
    func keepAlive() async throws {
        let server = try await RedisServer()
        let plan = RedisEnginePlan(server)
        let rig = try await EngineRig(plan, clock: clock)
        #expect(await rig.news.next() == .connected)
        server.signal(SIGSTOP)
        await clock.pass(plan.keepAlive)
        await clock.pass(plan.patience)
        #expect(await rig.reasonAway() == "it does not answer within 2.0 seconds")
        server.signal(SIGCONT)
    }

    @Test("what is asked before the first connection waits for it, and no longer than for an answer")
    func early() async throws {
        let server = try await RedisServer()
        let rig = try await EngineRig(server)
        #expect(await rig.ask(.fetch(after: 0)) == .nothing)
        server.signal(SIGSTOP)
        let plan = RedisEnginePlan(server)
        let late = try await EngineRig(plan, clock: clock)
        let replies = await late.begin(.fetch(after: 0))
        await clock.pass(plan.patience)
        #expect(await replies.value == [nil])
        #expect(await late.isThere == false)
        server.signal(SIGCONT)
        await clock.pass(plan.firstPause * 1.5)
        while await late.news.next() != .connected {}
        await late.with { $0.end() }
        #expect(await late.ask(.fetch(after: 0)) == nil)
    }

    @Test(
        "what is no engine is told, and harms nothing",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n", "*2147483647\r\n", "$9223372036854775807\r\n",
            "+PONG\r\n+PONG\r\n+PONG\r\n", "-LOADING x\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
            "\0", "",
        ], [true, false])
    func garbage(answer: String, closes: Bool) async throws {
        let peer = GarbagePeer(Array(answer.utf8), thenCloses: closes)
        var plan = RedisEnginePlan(place: .host("127.0.0.1", port: peer.port, isSecure: false))
        plan.patience = .milliseconds(300)
        let rig = try await EngineRig(plan)
        #expect(await rig.ask(.fetch(after: 0)) == nil)
        #expect(!(await rig.reasonAway()).isEmpty)
        #expect(await rig.isThere == false)
    }

    @Test("a place where nothing listens is told")
    func nothing() async throws {
        let plan = RedisEnginePlan(place: .socket("/nonexistent/socket"))
        #expect(try await EngineRig(plan).reasonAway() == "it refuses the connection, or nothing listens there")
        let port = RedisEnginePlan(place: .host("127.0.0.1", port: Ports.next(), isSecure: false))
        #expect(try await EngineRig(port).reasonAway() == "it refuses the connection, or nothing listens there")
    }
}
