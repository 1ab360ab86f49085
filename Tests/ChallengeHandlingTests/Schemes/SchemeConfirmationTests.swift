// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Confirmation of credentials")
struct SchemeConfirmationTests {
    private static let origin = Origin(scheme: .https, host: "h")
    private static let key = LatchKey(origin: origin, challenge: "corp", credential: "ann")
    private static let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
    private static let basic = "Basic realm=\"r\""

    private func login(
        _ scheme: any AuthenticationScheme = BasicScheme(), proof: String? = nil, refusedAt path: String? = nil,
        method: HTTPRequest.Method = .get, target: String? = nil
    ) -> SchemeLogin {
        let plan = SchemePlan(
            name: "corp", schemes: [scheme], key: Self.key, address: WebURL(origin: Self.origin, path: proof ?? "/"),
            isProof: proof != nil)
        let refusal = path.map {
            ExaminedResponse(
                status: 401, fields: [.wwwAuthenticate: Self.basic], method: method,
                url: WebURL(origin: Self.origin, path: $0))
        }
        return SchemeLogin(plan, challenge: refusal, target: target.map { WebURL(origin: Self.origin, path: $0) })
    }

    /// Returns a GET of `path` with or without a credential, and its reply.
    private func step(_ path: String, _ hasCredential: Bool, _ status: Int, _ challenge: String = basic) -> ScriptedStep
    {
        let fields: HTTPFields = status == 401 ? [.wwwAuthenticate: challenge] : [:]
        return ScriptedStep(.get, "https://h\(path)", .success(SideResponse(status: status, fields: fields))) {
            ($0.fields[.authorization] != nil) == hasCredential
        }
    }

    private func held(_ login: SchemeLogin, _ rig: LoginRig) async throws -> Session {
        let field = InjectedField(name: .authorization, value: Secret("Basic x"))
        return Session(unverified: CredentialUse(key: Self.key, credential: .ann), fields: [field])
    }

    private func confirm(_ login: SchemeLogin, _ steps: [ScriptedStep], mark: String?) async throws
        -> SessionConfirmation
    {
        let rig = LoginRig(steps, credentials: [.ann])
        if let mark { await rig.latches.accept(Self.key, .ann, Acceptance(path: mark, at: 0)) }
        let confirmation = await login.confirm(try await held(login, rig), rig.conversation)
        #expect(rig.requests.sent.count == steps.count && rig.latches.all.isEmpty)
        return confirmation
    }

    @Test("an accepted value is sent once more to its address, and only if that address asks for a password")
    func marked() async throws {
        let asked = step("/a", false, 401)
        #expect(try await confirm(login(), [asked, step("/a", true, 200)], mark: "/a") == .stillGood)
        #expect(try await confirm(login(), [asked, step("/a", true, 404)], mark: "/a") == .stillGood)
        #expect(try await confirm(login(), [asked, step("/a", true, 401)], mark: "/a") == .over)
        #expect(try await confirm(login(), [step("/a", false, 503)], mark: "/a") == .unknown)
        #expect(try await confirm(login(), [asked, step("/a", true, 429)], mark: "/a") == .unknown)
        #expect(try await confirm(login(), [asked, step("/a", true, 408)], mark: "/a") == .unknown)
    }

    @Test("a value that was never accepted is not sent again")
    func silent() async throws {
        #expect(try await confirm(login(), [], mark: nil) == .over)
        #expect(try await confirm(login(proof: "/p", refusedAt: "/p"), [], mark: nil) == .over)
    }

    @Test("an accepted value that no other address can confirm is sent again after a minute, and counts then")
    func postponed() async throws {
        let later = SessionConfirmation.postponed(until: LoginRig.now + 60_000)
        for (login, steps, mark) in [
            (login(refusedAt: "/a"), [], "/a"), (login(proof: "/p", refusedAt: "/p"), [], "/p"),
            (login(), [step("/a", false, 200)], "/a"),
        ] {
            let rig = LoginRig(steps, credentials: [.ann])
            await rig.latches.accept(Self.key, .ann, Acceptance(path: mark, at: 0))
            #expect(await login.confirm(try await held(login, rig), rig.conversation) == later)
            #expect(rig.requests.sent.count == steps.count && rig.latches.all.isEmpty)
            #expect(await login.confirm(try await held(login, rig), rig.conversation) == .over)
        }
    }

    @Test("a value is confirmed at another address than the one that refused it, and the owner of one latches nothing")
    func elsewhere() async throws {
        func confirm(_ steps: [ScriptedStep], refusedAt path: String, method: HTTPRequest.Method = .get) async throws
            -> SessionConfirmation
        {
            let rig = LoginRig(steps, credentials: [.ann])
            for path in ["/works", "/first"] {
                await rig.latches.accept(Self.key, .ann, Acceptance(path: path, at: 0))
            }
            let login = login(refusedAt: path, method: method)
            let confirmation = await login.confirm(try await held(login, rig), rig.conversation)
            #expect(rig.requests.sent.count == steps.count)
            return confirmation
        }
        let works = [step("/works", false, 401), step("/works", true, 200)]
        #expect(try await confirm(works, refusedAt: "/first") == .stillGood)
        // One that has become public, or is in trouble, decides nothing.
        #expect(try await confirm([step("/first", false, 200)] + works, refusedAt: "/other") == .stillGood)
        #expect(try await confirm([step("/first", false, 503)] + works, refusedAt: "/other") == .stillGood)
        let changed = [step("/works", false, 401), step("/works", true, 401)]
        #expect(try await confirm(changed, refusedAt: "/first") == .over)
        // The value was sent twice by then.
        let trouble = [step("/works", false, 401), step("/works", true, 503)]
        #expect(try await confirm(trouble, refusedAt: "/first") == .unknown)
        // A refused write says nothing about reading.
        let read = [step("/first", false, 401), step("/first", true, 200)]
        #expect(try await confirm(read, refusedAt: "/first", method: .post) == .stillGood)
    }

    @Test("an accepted value is not sent to `prove-at` before its session is used")
    func noTrial() async throws {
        let rig = LoginRig([], credentials: [.ann])
        await rig.latches.accept(Self.key, .ann, Acceptance(path: "/a", at: 0))
        #expect(try await rig.logIn(login(proof: "/p", refusedAt: "/met")).fields.count == 1)
        #expect(rig.requests.sent.isEmpty)
    }

    @Test("an address that accepted a value without a challenge proves nothing, unless it challenges now")
    func unasked() async throws {
        func confirm(_ steps: [ScriptedStep]) async throws -> SessionConfirmation {
            let rig = LoginRig(steps, credentials: [.ann])
            await rig.latches.accept(Self.key, .ann, Acceptance(path: "/a", at: 0, wasAsked: false))
            return await login().confirm(try await held(login(), rig), rig.conversation)
        }
        #expect(try await confirm([step("/a", false, 200)]) == .over)
        #expect(try await confirm([step("/a", false, 401), step("/a", true, 200)]) == .stillGood)
        #expect(try await confirm([step("/a", false, 401), step("/a", true, 401)]) == .over)
    }

    @Test("`prove-at` decides about a credential, whatever was accepted elsewhere")
    func proof() async throws {
        let asked = step("/p", false, 401)
        for mark in ["/a", nil] {
            #expect(try await confirm(login(proof: "/p"), [asked, step("/p", true, 200)], mark: mark) == .stillGood)
            #expect(try await confirm(login(proof: "/p"), [asked, step("/p", true, 401)], mark: mark) == .over)
        }
    }

    @Test("with `prove-at` a challenge leads to a session verified there, or to a rejection")
    func verifiedFirst() async throws {
        for (status, isVerified) in [(200, true), (401, false)] {
            let rig = LoginRig([step("/p", true, status)], credentials: [.ann])
            let login = login(proof: "/p", refusedAt: "/met")
            if isVerified {
                #expect(try await rig.logIn(login).isVerified)
                #expect(rig.latches.acceptance(Self.key, of: .ann)?.path == "/p")
            } else {
                #expect(await rig.lose(login).code == .rejected)
            }
        }
    }

    @Test("if the answer of `prove-at` cannot be read, the value goes to no other address", arguments: ["/met", nil])
    func unreadable(met: String?) async throws {
        let error = SideRequestError(.badAnswer, reason: "no HTTP")
        let rig = LoginRig([ScriptedStep(.get, "https://h/p", .failure(error)) { _ in true }], credentials: [.ann])
        #expect(await rig.lose(login(proof: "/p", refusedAt: met)).isUnknown)
        #expect(rig.requests.sent.count == 1 && rig.latches.all.isEmpty)
    }

    @Test("if the answer to HEAD of `prove-at` cannot be read, no other request has the value")
    func unreadableHead() async throws {
        let error = SideRequestError(.badAnswer, reason: "no HTTP")
        let rig = LoginRig([ScriptedStep(.head, "https://h/p", .failure(error)) { _ in true }], credentials: [.ann])
        #expect(await rig.lose(login(proof: "/p", target: "/a")).isUnknown)
        #expect(rig.requests.sent.count == 1 && rig.latches.all.isEmpty)
    }

    @Test("before a challenge an accepted value is not rejected by the address that happens to be requested")
    func ahead() async throws {
        let refused = [step("/", true, 401), step("/a", false, 401)]
        let rig = LoginRig(refused + [step("/a", true, 200)], credentials: [.ann])
        await rig.latches.accept(Self.key, .ann, Acceptance(path: "/a", at: 0))
        #expect(try await rig.logIn(login()).isVerified)
        let wrong = LoginRig(refused + [step("/a", true, 401)], credentials: [.ann])
        await wrong.latches.accept(Self.key, .ann, Acceptance(path: "/a", at: 0))
        #expect(await wrong.lose(login()).code == .rejected)
    }

    @Test("a static token is confirmed like other credentials")
    func fixedToken() async throws {
        let key = TokenScript.key
        let login = StaticTokenLogin(key: key)
        func step(_ hasToken: Bool, _ status: Int) -> ScriptedStep {
            let fields: HTTPFields = status == 401 ? [.wwwAuthenticate: "Bearer"] : [:]
            return ScriptedStep(
                .get, "https://id.example.com/a", .success(SideResponse(status: status, fields: fields))
            ) { ($0.fields[.authorization] != nil) == hasToken }
        }
        for (steps, confirmation) in [
            ([step(false, 401), step(true, 200)], .stillGood), ([step(false, 401), step(true, 401)], .over),
            ([step(false, 200)], .postponed(until: LoginRig.now + 60_000)), ([], .over),
        ] as [([ScriptedStep], SessionConfirmation)] {
            let rig = LoginRig.tokens(steps)
            let held = try await login.logIn(rig.conversation)
            if !steps.isEmpty { await rig.latches.accept(key, TokenScript.client, Acceptance(path: "/a", at: 0)) }
            #expect(await login.confirm(held, rig.conversation) == confirmation)
            #expect(rig.requests.sent.count == steps.count)
        }
    }
}
