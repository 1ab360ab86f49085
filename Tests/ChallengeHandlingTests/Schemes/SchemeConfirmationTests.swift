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
        _ scheme: any AuthenticationScheme = BasicScheme(), proof: String? = nil, refusedAt path: String? = nil
    ) -> SchemeLogin {
        let plan = SchemePlan(
            name: "corp", schemes: [scheme], key: Self.key, address: WebURL(origin: Self.origin, path: proof ?? "/"),
            isProof: proof != nil)
        let refusal = path.map {
            ExaminedResponse(
                status: 401, fields: [.wwwAuthenticate: Self.basic], url: WebURL(origin: Self.origin, path: $0))
        }
        return SchemeLogin(plan, challenge: refusal)
    }

    /// A GET of `path` with or without a credential, and what it gets.
    private func step(_ path: String, _ hasCredential: Bool, _ status: Int, _ challenge: String = basic) -> ScriptedStep
    {
        let fields: HTTPFields = status == 401 ? [.wwwAuthenticate: challenge] : [:]
        return ScriptedStep(.get, "https://h\(path)", .success(SideResponse(status: status, fields: fields))) {
            ($0.fields[.authorization] != nil) == hasCredential
        }
    }

    private func held(_ login: SchemeLogin, _ world: World) async throws -> Session {
        let field = InjectedField(name: .authorization, value: Secret("Basic x"))
        return Session(unproven: CredentialUse(key: Self.key, credential: .ann), fields: [field])
    }

    private func confirm(_ login: SchemeLogin, _ steps: [ScriptedStep], mark: String?) async throws
        -> SessionConfirmation
    {
        let world = World(steps, credentials: [.ann])
        if let mark { world.latches.accept(Self.key, .ann, Acceptance(path: mark, at: 0)) }
        let confirmation = await login.confirm(try await held(login, world), world.conversation)
        #expect(world.requests.sent.count == steps.count && world.latches.all.isEmpty)
        return confirmation
    }

    @Test("a value that was accepted is put to the server where that was, once, and only where a password is asked for")
    func marked() async throws {
        let asked = step("/a", false, 401)
        #expect(try await confirm(login(), [asked, step("/a", true, 200)], mark: "/a") == .stillGood)
        #expect(try await confirm(login(), [asked, step("/a", true, 404)], mark: "/a") == .stillGood)
        #expect(try await confirm(login(), [asked, step("/a", true, 401)], mark: "/a") == .over)
        #expect(try await confirm(login(), [step("/a", false, 200)], mark: "/a") == .unknown)
        #expect(try await confirm(login(), [step("/a", false, 503)], mark: "/a") == .unknown)
        #expect(try await confirm(login(), [asked, step("/a", true, 429)], mark: "/a") == .unknown)
    }

    @Test("a value that was never accepted, or that is refused at the very address, is not sent again")
    func silent() async throws {
        #expect(try await confirm(login(), [], mark: nil) == .over)
        #expect(try await confirm(login(refusedAt: "/a"), [], mark: "/a") == .over)
        #expect(try await confirm(login(proof: "/p", refusedAt: "/p"), [], mark: "/a") == .over)
    }

    @Test("an address that took the value without asking for one is no proof, unless it asks now")
    func unasked() async throws {
        func confirm(_ steps: [ScriptedStep]) async throws -> SessionConfirmation {
            let world = World(steps, credentials: [.ann])
            world.latches.accept(Self.key, .ann, Acceptance(path: "/a", at: 0, wasAsked: false))
            return await login().confirm(try await held(login(), world), world.conversation)
        }
        #expect(try await confirm([step("/a", false, 200)]) == .over)
        #expect(try await confirm([step("/a", false, 401), step("/a", true, 200)]) == .stillGood)
        #expect(try await confirm([step("/a", false, 401), step("/a", true, 401)]) == .over)
    }

    @Test("prove-at decides, whatever was accepted elsewhere")
    func proof() async throws {
        let asked = step("/p", false, 401)
        for mark in ["/a", nil] {
            #expect(try await confirm(login(proof: "/p"), [asked, step("/p", true, 200)], mark: mark) == .stillGood)
            #expect(try await confirm(login(proof: "/p"), [asked, step("/p", true, 401)], mark: mark) == .over)
        }
    }

    @Test("with prove-at a challenge leads to a session that is proven there, or to a rejection")
    func provenFirst() async throws {
        for (status, isProven) in [(200, true), (401, false)] {
            let world = World([step("/p", true, status)], credentials: [.ann])
            let login = login(proof: "/p", refusedAt: "/met")
            if isProven {
                #expect(try await world.win(login).isProven)
                #expect(world.latches.acceptance(Self.key, of: .ann)?.path == "/p")
            } else {
                #expect(await world.lose(login).code == .rejected)
            }
        }
    }

    @Test("ahead of a challenge an accepted value is not rejected by the address that happens to be looked at")
    func ahead() async throws {
        let refused = [step("/", true, 401), step("/a", false, 401)]
        let world = World(refused + [step("/a", true, 200)], credentials: [.ann])
        world.latches.accept(Self.key, .ann, Acceptance(path: "/a", at: 0))
        #expect(try await world.win(login()).isProven)
        let wrong = World(refused + [step("/a", true, 401)], credentials: [.ann])
        wrong.latches.accept(Self.key, .ann, Acceptance(path: "/a", at: 0))
        #expect(await wrong.lose(login()).code == .rejected)
    }

    @Test("a fixed token is confirmed in the same way")
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
            ([step(false, 200)], .unknown), ([], .over),
        ] as [([ScriptedStep], SessionConfirmation)] {
            let world = World.tokens(steps)
            let held = try await login.win(world.conversation)
            if !steps.isEmpty { world.latches.accept(key, TokenScript.client, Acceptance(path: "/a", at: 0)) }
            #expect(await login.confirm(held, world.conversation) == confirmation)
            #expect(world.requests.sent.count == steps.count)
        }
    }
}
