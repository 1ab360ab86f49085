// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Scheme login")
struct SchemeLoginTests {
    private static let origin = Origin(scheme: .https, host: "h")
    private static let address = WebURL(origin: origin, path: "/start", query: "x=1")
    private static let key = LatchKey(origin: origin, challenge: "corp", credential: "ann")
    private static let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
    /// "ann-u:pass\"word"
    private static let basicValue = "Basic YW5uLXU6cGFzcyJ3b3Jk"

    private func login(
        _ schemes: [any AuthenticationScheme], realm: String? = nil, challenge: [String]? = nil,
        spaces: RealmSpaces? = nil
    ) -> SchemeLogin {
        let plan = SchemePlan(
            name: "corp", schemes: schemes, realm: realm, key: Self.key, address: Self.address, spaces: spaces)
        let response = challenge.map { values in
            ExaminedResponse(
                status: 401, fields: Self.challenges(values), url: WebURL(origin: Self.origin, path: "/met/here"))
        }
        return SchemeLogin(plan, challenge: response)
    }

    private static func challenges(_ values: [String]) -> HTTPFields {
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        return fields
    }

    /// A GET of the address whose `Authorization` begins like this (`nil`: has none), and what it gets.
    private func step(_ begins: String?, _ status: Int, _ challenges: [String] = []) -> ScriptedStep {
        let expected: @Sendable (SideRequest) -> Bool = { request in
            guard let begins else { return request.fields[.authorization] == nil }
            return request.fields[.authorization]?.hasPrefix(begins) == true
        }
        return ScriptedStep(
            .get, "https://h/start",
            .success(SideResponse(status: status, fields: Self.challenges(challenges))), where: expected)
    }

    @Test("after a challenge the first scheme of the list that is offered wins, unproven")
    func preference() async throws {
        let world = World(credentials: [.ann])
        let schemes: [any AuthenticationScheme] = [DigestScheme(digests: NoDigests()), BasicScheme()]
        let digest = try await world.win(login(schemes, challenge: ["Basic realm=\"r\"", Self.digest]))
        #expect(digest.fields.isEmpty && digest.signer is DigestSigner)
        #expect(!digest.isProven && digest.use?.key == Self.key && digest.expiresAt == nil)
        let basic = try await world.win(login(schemes, challenge: ["Basic realm=\"r\"", "Negotiate"]))
        #expect(basic.fields.map { $0.value.revealText() } == [Self.basicValue])
        #expect(!basic.isProven && basic.signer == nil && basic.use?.credential.name == "ann")
    }

    @Test("a scheme that does not work here gives way to the next, one that fails does not")
    func fallback() async throws {
        let world = World(credentials: [.ann])
        let fallen = try await world.win(
            login([Ticketless(), BasicScheme()], challenge: ["Ticket", "Basic realm=\"r\""]))
        #expect(fallen.fields.count == 1)
        let alone = await world.lose(login([Ticketless(), BasicScheme()], challenge: ["Ticket"]))
        #expect(alone.code == .failed && alone.detail.contains("ticket"))
        let gone = await world.lose(login([BasicScheme()], challenge: ["Ticket"]))
        #expect(gone.code == .failed && gone.detail.contains("none any more"))
        let broken = World(credentials: [Credential(name: "ann", fields: ["username": Secret("ann-u")])])
        let failure = await broken.lose(
            login([DigestScheme(digests: NoDigests()), BasicScheme()], challenge: [Self.digest, "Basic realm=\"r\""]))
        #expect(failure.code == .noCredential)
    }

    @Test("a closed latch sends nothing, nor asks")
    func latched() async throws {
        let world = World(credentials: [.ann])
        world.latches.close(Self.key, for: .ann, Latch(reason: .rejected, closedAt: World.now))
        #expect(await world.lose(login([DigestScheme(digests: NoDigests())])).code == .latched)
        #expect(await world.lose(login([BasicScheme()], challenge: ["Basic realm=\"r\""])).code == .latched)
    }

    @Test("Basic alone goes ahead without a challenge; what is no refusal proves nothing", arguments: [200, 404, 302])
    func basicAhead(status: Int) async throws {
        let world = World([step(Self.basicValue, status)], credentials: [.ann])
        let session = try await world.win(login([BasicScheme()]))
        #expect(session.fields.count == 1 && !session.isProven)
    }

    @Test("ahead of any challenge, one is asked for and answered, and the answer proves the session")
    func digestAhead() async throws {
        let world = World([step(nil, 401, [Self.digest]), step("Digest username=\"ann-u\"", 204)], credentials: [.ann])
        let session = try await world.win(login([DigestScheme(digests: NoDigests()), BasicScheme()]))
        #expect(session.isProven && session.use?.credential.name == "ann")
        let next = try session.signer?.sign(SigningRequest(to: "/other", method: "POST")).fields.first?.value
            .revealText()
        #expect(next?.contains("nc=00000002") == true)
        #expect(world.steps.contains("GET /start with the credential: 204"))
    }

    // MARK: For a request that waits

    private func login(
        _ scheme: any AuthenticationScheme, target: String = "https://h/up/here?x=1", isProof: Bool = false
    ) -> SchemeLogin {
        let proof = WebURL(origin: Self.origin, path: "/proof")
        let plan = SchemePlan(
            name: "corp", schemes: [scheme], key: Self.key, address: isProof ? proof : Self.address, isProof: isProof)
        return SchemeLogin(plan, challenge: nil, target: LoginOccasion(target: WebURL(target)).target)
    }

    private func head(
        _ begins: String?, _ status: Int, _ challenges: [String] = [], at path: String = "/up/here"
    ) -> ScriptedStep {
        ScriptedStep(
            .head, "https://h\(path)", .success(SideResponse(status: status, fields: Self.challenges(challenges)))
        ) { request in
            guard let begins else { return request.fields[.authorization] == nil }
            return request.fields[.authorization]?.hasPrefix(begins) == true
        }
    }

    @Test("for a request that waits, Digest is asked for and answered by HEAD of its own path, without its query")
    func digestForTarget() async throws {
        let world = World([head(nil, 401, [Self.digest]), head("Digest ", 404)], credentials: [.ann])
        #expect(try await world.win(login(DigestScheme(digests: NoDigests()))).isProven)
    }

    @Test("for a request that waits, `prove-at` is asked in the place of its own path")
    func digestAtProof() async throws {
        let steps = [head(nil, 401, [Self.digest], at: "/proof"), head("Digest ", 200, at: "/proof")]
        let world = World(steps, credentials: [.ann])
        #expect(try await world.win(login(DigestScheme(digests: NoDigests()), isProof: true)).isProven)
    }

    @Test("for a request that waits, Basic costs no request: it goes along with that one, which tries it")
    func basicForTarget() async throws {
        let session = try await World(credentials: [.ann]).win(login(BasicScheme()))
        #expect(session.fields.count == 1 && !session.isProven)
    }

    @Test(
        "if nothing is asked for where a request waits, or its server is in trouble, the session is empty and ends soon"
    )
    func nothingForTarget() async throws {
        let digest = DigestScheme(digests: NoDigests())
        let refused = head(nil, 0).replying(.failure(SideRequestError(.unreachable, reason: "refused")))
        for (step, life) in [
            (head(nil, 200), 60_000), (head(nil, 405), 60_000), (head(nil, 501), 60_000),
            (head(nil, 401, ["Basic realm=\"r\""]), 60_000), (head(nil, 503), 5_000), (head(nil, 429), 5_000),
            (refused, 5_000),
        ] as [(ScriptedStep, Int64)] {
            let session = try await World([step], credentials: [.ann]).win(login(digest))
            #expect(session.isEmpty && session.expiresAt == World.now + life)
        }
        let slow = head(nil, 0).replying(.failure(SideRequestError(.timedOut, reason: "slow")))
        #expect(await World([slow], credentials: [.ann]).lose(login(digest)).code == .timedOut)
    }

    @Test("a credential that cannot be used leaves a request alone where certainly nothing is asked for")
    func latchedForTarget() async throws {
        func world(_ steps: [ScriptedStep]) -> World {
            let world = World(steps, credentials: [.ann])
            world.latches.close(Self.key, for: .ann, Latch(reason: .rejected, closedAt: World.now))
            return world
        }
        let digest = DigestScheme(digests: NoDigests())
        #expect(try await world([head(nil, 200)]).win(login(digest)).isEmpty)
        #expect(try await world([head(nil, 401, ["Basic realm=\"r\""])]).win(login(digest)).isEmpty)
        #expect(try await world([head(nil, 200)]).win(login(digest, isProof: true)).isEmpty)
        for step in [head(nil, 401, [Self.digest]), head(nil, 503)] {
            #expect(await world([step]).lose(login(digest)).code == .latched)
        }
        // Basic would have gone ahead: an open address may be one that serves everybody in another way.
        #expect(await world([]).lose(login(BasicScheme())).code == .latched)
        #expect(await World([head(nil, 401, [Self.digest])]).lose(login(digest)).code == .noCredential)
    }

    @Test(
        "an application that fails at HEAD decides nothing: the request that waits tries the answer",
        arguments: [500, 501])
    func headFails(status: Int) async throws {
        let world = World([head(nil, 401, [Self.digest]), head("Digest ", status)], credentials: [.ann])
        #expect(try await !world.win(login(DigestScheme(digests: NoDigests()))).isProven)
    }

    @Test("a wrong password is rejected before the request that waits is sent")
    func rejectedForTarget() async throws {
        let world = World(
            [head(nil, 401, [Self.digest]), head("Digest ", 401, [Self.digest])], credentials: [.ann])
        #expect(await world.lose(login(DigestScheme(digests: NoDigests()))).code == .rejected)
        #expect(world.latches.keys == [Self.key])
    }

    @Test("a refusal closes the latch after one attempt", arguments: [true, false])
    func refused(isBasic: Bool) async throws {
        let steps =
            isBasic
            ? [step(Self.basicValue, 401, ["Basic realm=\"r\""])]
            : [step(nil, 401, [Self.digest]), step("Digest ", 401, [Self.digest])]
        let world = World(steps, credentials: [.ann])
        let scheme: any AuthenticationScheme = isBasic ? BasicScheme() : DigestScheme(digests: NoDigests())
        #expect(await world.lose(login([scheme])).code == .rejected)
        #expect(world.latches.keys == [Self.key])
    }

    @Test("a nonce too old at once, 5xx, 429 and silence are unknown")
    func unknown() async throws {
        for steps in [
            [step(nil, 401, [Self.digest]), step("Digest ", 401, [Self.digest + ", stale=true"])],
            [step(nil, 401, [Self.digest]), step("Digest ", 503)], [step(nil, 429)],
            [step(nil, 0).replying(.failure(SideRequestError(.timedOut, reason: "slow")))],
        ] {
            let world = World(steps, credentials: [.ann])
            let failure = await world.lose(login([DigestScheme(digests: NoDigests())]))
            #expect(failure.isUnknown && world.latches.all.isEmpty)
        }
    }

    @Test("where nothing is asked for, nothing is added", arguments: [200, 401])
    func unprotected(status: Int) async throws {
        let other = status == 401 ? ["Basic realm=\"other\""] : []
        let world = World([step(nil, status, other)], credentials: [.ann])
        let session = try await world.win(login([BasicScheme()], realm: "r"))
        #expect(session.fields.isEmpty && session.signer == nil && session.isProven)
    }

    @Test("where realms are told apart, only requests of the own one carry the fields")
    func spaces() async throws {
        let world = World(credentials: [.ann])
        let spaces = RealmSpaces()
        let plan = SchemePlan(
            name: "corp", schemes: [BasicScheme()], realm: "r", key: Self.key, address: Self.address, spaces: spaces)
        let fields = Self.challenges(["Basic realm=\"r\""])
        let challenge = ExaminedResponse(
            status: 401, fields: fields, url: WebURL(origin: Self.origin, path: "/met/here"))
        _ = SchemeDetector(plan).examine(challenge, hasSession: false)
        let session = try await world.win(SchemeLogin(plan, challenge: challenge))
        let signer = try #require(session.signer)
        #expect(session.fields.isEmpty && signer.names == [.authorization])
        func count(_ target: String) throws -> Int {
            try signer.sign(SigningRequest(to: target)).fields.count
        }
        #expect(try count("/met/") == 1 && count("/elsewhere") == 1)
        signer.learn(status: 200, fields: [:], target: "/")
        #expect(try count("/met/x?y=/z") == 1 && count("/met/x/y") == 1)
        #expect(try count("/elsewhere") == 0 && count("/") == 0)
    }
}

/// A scheme without what it needs.
private struct Ticketless: AuthenticationScheme {
    var name: String { "ticket" }

    func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        challenges.contains { $0.isScheme("Ticket") } ? .challenged() : nil
    }

    func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer { .useless("no ticket") }
}

extension SigningRequest {
    /// A request without a body, of which nothing else is known.
    init(to target: String, method: String = "GET") {
        self.init(method: method, origin: Origin(scheme: .https, host: "api.example.com"), target: target)
    }
}
