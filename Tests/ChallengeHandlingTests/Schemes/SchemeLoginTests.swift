// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

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

    /// Returns a GET whose `Authorization` begins with `begins` (`nil`: is absent), and its reply.
    private func step(_ begins: String?, _ status: Int, _ challenges: [String] = []) -> ScriptedStep {
        let expected: @Sendable (SideRequest) -> Bool = { request in
            guard let begins else { return request.fields[.authorization] == nil }
            return request.fields[.authorization]?.hasPrefix(begins) == true
        }
        return ScriptedStep(
            .get, "https://h/start",
            .success(SideResponse(status: status, fields: Self.challenges(challenges))), where: expected)
    }

    @Test("after a challenge the first offered scheme of the list is used, with an unverified session")
    func preference() async throws {
        let rig = LoginRig(credentials: [.ann])
        let schemes: [any AuthenticationScheme] = [DigestScheme(digests: NoDigests()), BasicScheme()]
        let digest = try await rig.logIn(login(schemes, challenge: ["Basic realm=\"r\"", Self.digest]))
        #expect(digest.fields.isEmpty && digest.signer is DigestSigner)
        #expect(!digest.isVerified && digest.use?.key == Self.key && digest.expiresAt == nil)
        let basic = try await rig.logIn(login(schemes, challenge: ["Basic realm=\"r\"", "Negotiate"]))
        #expect(basic.fields.map { $0.value.revealText() } == [Self.basicValue])
        #expect(!basic.isVerified && basic.signer == nil && basic.use?.credential.name == "ann")
    }

    @Test("a login that meets another realm than its own says which one the server names")
    func otherRealm() async throws {
        let rig = LoginRig([step(nil, 401, ["Basic realm=\"Internal API\""])], credentials: [.ann])
        _ = try await rig.logIn(login([BasicScheme()], realm: "Console", spaces: RealmSpaces()))
        #expect(
            rig.steps.contains(
                "the server asks for Basic with the realm \"Internal API\", which is not what this challenge answers"))
    }

    @Test("a scheme that does not work here gives way to the next, one that fails does not")
    func fallback() async throws {
        let rig = LoginRig(credentials: [.ann])
        let fallen = try await rig.logIn(
            login([Ticketless(), BasicScheme()], challenge: ["Ticket", "Basic realm=\"r\""]))
        #expect(fallen.fields.count == 1)
        let alone = await rig.lose(login([Ticketless(), BasicScheme()], challenge: ["Ticket"]))
        #expect(alone.code == .failed && alone.detail.contains("ticket"))
        let gone = await rig.lose(login([BasicScheme()], challenge: ["Ticket"]))
        #expect(gone.code == .failed && gone.detail.contains("no longer offers"))
        let broken = LoginRig(credentials: [Credential(name: "ann", fields: ["username": Secret("ann-u")])])
        let failure = await broken.lose(
            login([DigestScheme(digests: NoDigests()), BasicScheme()], challenge: [Self.digest, "Basic realm=\"r\""]))
        #expect(failure.code == .noCredential)
    }

    @Test("a scheme login with a closed latch sends nothing")
    func latched() async throws {
        let rig = LoginRig(credentials: [.ann])
        await rig.latches.close(Self.key, for: .ann, Latch(reason: .rejected, closedAt: LoginRig.now))
        #expect(await rig.lose(login([DigestScheme(digests: NoDigests())])).code == .latched)
        #expect(await rig.lose(login([BasicScheme()], challenge: ["Basic realm=\"r\""])).code == .latched)
    }

    @Test(
        "Basic alone is sent without a challenge, and an answer that is no refusal proves nothing",
        arguments: [200, 404, 302])
    func basicAhead(status: Int) async throws {
        let rig = LoginRig([step(Self.basicValue, status)], credentials: [.ann])
        let session = try await rig.logIn(login([BasicScheme()]))
        #expect(session.fields.count == 1 && !session.isVerified)
    }

    @Test("before any challenge, one is requested and answered, and the answer verifies the session")
    func digestAhead() async throws {
        let rig = LoginRig(
            [step(nil, 401, [Self.digest]), step("Digest username=\"ann-u\"", 204)], credentials: [.ann])
        let session = try await rig.logIn(login([DigestScheme(digests: NoDigests()), BasicScheme()]))
        #expect(session.isVerified && session.use?.credential.name == "ann")
        let next = try session.signer?.sign(SigningRequest(to: "/other", method: "POST")).fields.first?.value
            .revealText()
        #expect(next?.contains("nc=00000002") == true)
        #expect(rig.steps.contains("GET /start with the credential: 204"))
    }

    // MARK: Logins before a waiting request

    private func login(
        _ scheme: any AuthenticationScheme, target: String = "https://h/up/here?x=1", isProof: Bool = false
    ) -> SchemeLogin {
        let proof = WebURL(origin: Self.origin, path: "/proof")
        let plan = SchemePlan(
            name: "corp", schemes: [scheme], key: Self.key, address: isProof ? proof : Self.address, isProof: isProof)
        return SchemeLogin(plan, challenge: nil, target: LoginOccasion(target: WebURL(target)).target)
    }

    private func head(
        _ begins: String?, _ status: Int, _ challenges: [String] = [], at path: String = "/up/here",
        by method: HTTPRequest.Method = .head
    ) -> ScriptedStep {
        ScriptedStep(
            method, "https://h\(path)", .success(SideResponse(status: status, fields: Self.challenges(challenges)))
        ) { request in
            guard let begins else { return request.fields[.authorization] == nil }
            return request.fields[.authorization]?.hasPrefix(begins) == true
        }
    }

    @Test("for a waiting request, Digest is requested and answered by HEAD of its path without the query")
    func digestForTarget() async throws {
        let rig = LoginRig([head(nil, 401, [Self.digest]), head("Digest ", 404)], credentials: [.ann])
        #expect(try await rig.logIn(login(DigestScheme(digests: NoDigests()))).isVerified)
    }

    @Test("for a waiting request, `prove-at` is requested instead of its own path")
    func digestAtProof() async throws {
        let steps = [head(nil, 401, [Self.digest], at: "/proof"), head("Digest ", 200, at: "/proof")]
        let rig = LoginRig(steps, credentials: [.ann])
        #expect(try await rig.logIn(login(DigestScheme(digests: NoDigests()), isProof: true)).isVerified)
    }

    @Test("for a waiting request, Basic needs no extra request: the waiting request carries it")
    func basicForTarget() async throws {
        let session = try await LoginRig(credentials: [.ann]).logIn(login(BasicScheme()))
        #expect(session.fields.count == 1 && !session.isVerified)
    }

    @Test("for a waiting request, Basic is sent to `prove-at` first, and nowhere else if it is refused there")
    func basicAtProof() async throws {
        let accepting = LoginRig([head("Basic ", 200, at: "/proof")], credentials: [.ann])
        #expect(try await accepting.logIn(login(BasicScheme(), isProof: true)).isVerified)
        let refusing = LoginRig([head("Basic ", 401, ["Basic realm=\"r\""], at: "/proof")], credentials: [.ann])
        #expect(await refusing.lose(login(BasicScheme(), isProof: true)).code == .rejected)
    }

    @Test("if HEAD of `prove-at` shows nothing, GET of it decides, and no other address", arguments: [500, 503, 408])
    func proofWithoutHead(status: Int) async throws {
        func rig(_ second: Int) -> LoginRig {
            let challenges = second == 401 ? ["Basic realm=\"r\""] : []
            return LoginRig(
                [
                    head("Basic ", status, at: "/proof"),
                    head("Basic ", second, challenges, at: "/proof", by: .get),
                ], credentials: [.ann])
        }
        #expect(try await rig(200).logIn(login(BasicScheme(), isProof: true)).isVerified)
        #expect(await rig(401).lose(login(BasicScheme(), isProof: true)).code == .rejected)
        #expect(await rig(status).lose(login(BasicScheme(), isProof: true)).code == .failed)
    }

    @Test(
        "if a waiting request needs no login, or its server is in trouble, the session is empty and short"
    )
    func nothingForTarget() async throws {
        let digest = DigestScheme(digests: NoDigests())
        let refused = head(nil, 0).replying(.failure(SideRequestError(.unreachable, reason: "refused")))
        for (step, life) in [
            (head(nil, 200), 60_000), (head(nil, 405), 60_000), (head(nil, 501), 60_000),
            (head(nil, 401, ["Basic realm=\"r\""]), 60_000), (head(nil, 503), 5_000), (head(nil, 429), 5_000),
            (head(nil, 408), 5_000), (refused, 5_000),
        ] as [(ScriptedStep, Int64)] {
            let session = try await LoginRig([step], credentials: [.ann]).logIn(login(digest))
            #expect(session.isEmpty && session.expiresAt == LoginRig.now + life)
        }
        let slow = head(nil, 0).replying(.failure(SideRequestError(.timedOut, reason: "slow")))
        #expect(await LoginRig([slow], credentials: [.ann]).lose(login(digest)).code == .timedOut)
    }

    @Test("an unusable credential does not block a request that certainly needs no login")
    func latchedForTarget() async throws {
        func rig(_ steps: [ScriptedStep]) async -> LoginRig {
            let rig = LoginRig(steps, credentials: [.ann])
            await rig.latches.close(Self.key, for: .ann, Latch(reason: .rejected, closedAt: LoginRig.now))
            return rig
        }
        let digest = DigestScheme(digests: NoDigests())
        #expect(try await rig([head(nil, 200)]).logIn(login(digest)).isEmpty)
        #expect(try await rig([head(nil, 401, ["Basic realm=\"r\""])]).logIn(login(digest)).isEmpty)
        #expect(try await rig([head(nil, 200)]).logIn(login(digest, isProof: true)).isEmpty)
        for step in [head(nil, 401, [Self.digest]), head(nil, 503)] {
            #expect(await rig([step]).lose(login(digest)).code == .latched)
        }
        // Basic would have been sent at once: an open address may show anonymous users a different page.
        #expect(await rig([]).lose(login(BasicScheme())).code == .latched)
        #expect(await LoginRig([head(nil, 401, [Self.digest])]).lose(login(digest)).code == .noCredential)
    }

    @Test(
        "an application that fails at HEAD decides nothing, and the waiting request tries the answer",
        arguments: [500, 501])
    func headFails(status: Int) async throws {
        let rig = LoginRig([head(nil, 401, [Self.digest]), head("Digest ", status)], credentials: [.ann])
        #expect(try await !rig.logIn(login(DigestScheme(digests: NoDigests()))).isVerified)
    }

    @Test("a wrong password is rejected before the waiting request is sent")
    func rejectedForTarget() async throws {
        let rig = LoginRig(
            [head(nil, 401, [Self.digest]), head("Digest ", 401, [Self.digest])], credentials: [.ann])
        #expect(await rig.lose(login(DigestScheme(digests: NoDigests()))).code == .rejected)
        #expect(rig.latches.keys == [Self.key])
    }

    @Test("a refusal of a scheme's answer closes the latch after one attempt", arguments: [true, false])
    func refused(isBasic: Bool) async throws {
        let steps =
            isBasic
            ? [step(Self.basicValue, 401, ["Basic realm=\"r\""])]
            : [step(nil, 401, [Self.digest]), step("Digest ", 401, [Self.digest])]
        let rig = LoginRig(steps, credentials: [.ann])
        let scheme: any AuthenticationScheme = isBasic ? BasicScheme() : DigestScheme(digests: NoDigests())
        #expect(await rig.lose(login([scheme])).code == .rejected)
        #expect(rig.latches.keys == [Self.key])
    }

    @Test("a new nonce called stale, 5xx, 408, 429 and silence leave a scheme login's outcome unknown")
    func unknown() async throws {
        for steps in [
            [step(nil, 401, [Self.digest]), step("Digest ", 401, [Self.digest + ", stale=true"])],
            [step(nil, 401, [Self.digest]), step("Digest ", 503)], [step(nil, 429)], [step(nil, 408)],
            [step(nil, 0).replying(.failure(SideRequestError(.timedOut, reason: "slow")))],
        ] {
            let rig = LoginRig(steps, credentials: [.ann])
            let failure = await rig.lose(login([DigestScheme(digests: NoDigests())]))
            #expect(failure.isUnknown && rig.latches.all.isEmpty)
        }
    }

    @Test("a server that asks for no login gets no credential", arguments: [200, 401])
    func unprotected(status: Int) async throws {
        let other = status == 401 ? ["Basic realm=\"other\""] : []
        let rig = LoginRig([step(nil, status, other)], credentials: [.ann])
        let session = try await rig.logIn(login([BasicScheme()], realm: "r"))
        #expect(session.fields.isEmpty && session.signer == nil && session.isVerified)
    }

    @Test("with several realms, only requests within a session's realm carry its fields")
    func spaces() async throws {
        let rig = LoginRig(credentials: [.ann])
        let spaces = RealmSpaces()
        let plan = SchemePlan(
            name: "corp", schemes: [BasicScheme()], realm: "r", key: Self.key, address: Self.address, spaces: spaces)
        let fields = Self.challenges(["Basic realm=\"r\""])
        let challenge = ExaminedResponse(
            status: 401, fields: fields, url: WebURL(origin: Self.origin, path: "/met/here"))
        _ = SchemeDetector(plan).examine(challenge, hasSession: false)
        let session = try await rig.logIn(SchemeLogin(plan, challenge: challenge))
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

    @Test("of the sessions of 300 realms, a request asks only that of its own realm")
    func manyRealms() throws {
        let spaces = RealmSpaces(realms: 300)
        let asked = Counter()
        let signers: [any RequestSigner] = (0..<300).map { number in
            _ = spaces.learn("r\(number)", at: WebURL(origin: Self.origin, path: "/\(number)/"))
            var session = Session()
            session.signer = CountingSigner(asked, "\(number)")
            return RealmSigner(session, of: "r\(number)", in: spaces)
        }
        #expect(signers.allSatisfy { $0.group === spaces })
        let view = spaces.makeView(of: signers)
        func values(_ target: String) throws -> [String] {
            var values: [String] = []
            _ = try view.sign(SigningRequest(to: target)) { values.append(text($1)) }
            return values
        }
        #expect(try values("/7/x?y=/8/") == ["7"])
        #expect(asked.count == 1)
        #expect(try values("/elsewhere").count == 300, "none is accepted yet, and each may verify its session there")
        view.learn(status: 200, fields: [:], target: "/7/x")
        asked.count = 0
        #expect(try values("/elsewhere").isEmpty && values("/299/").count == 1)
        #expect(asked.count == 1)
    }
}

private func text(_ bytes: Span<UInt8>) -> String {
    String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
}

/// Number of signatures.
private final class Counter: @unchecked Sendable { var count = 0 }

private final class CountingSigner: RequestSigner {
    private let counter: Counter
    private let value: String
    let names: [HTTPField.Name] = [.authorization]

    init(_ counter: Counter, _ value: String) { (self.counter, self.value) = (counter, value) }

    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        counter.count += 1
        return SignedFields([InjectedField(name: .authorization, value: Secret(value))])
    }

    func learn(status: Int, fields: HTTPFields, target: String) {}
}

/// Scheme whose prerequisites are missing.
private struct Ticketless: AuthenticationScheme {
    var name: String { "ticket" }

    func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        challenges.contains { $0.isScheme("Ticket") } ? .challenged() : nil
    }

    func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer { .useless("no ticket") }
}

extension SigningRequest {
    /// Creates a request without a body and without fields.
    init(to target: String, method: String = "GET") {
        self.init(method: method, origin: Origin(scheme: .https, host: "api.example.com"), target: target)
    }
}
