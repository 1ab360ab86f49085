// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Credentials
import Curl
import Kerberos
import Secrets
import Synchronization
import System
import Testing

@testable import ChallengeClient
@testable import CountersignDaemon
@testable import Settings

@Suite("TLS settings of logins")
struct LoginConnectionsTests {
    private static let bank = Origin(scheme: .https, host: "bank.example", port: 443)
    private static let server = Origin(scheme: .https, host: "id.example", port: 443)
    private static let other = Origin(scheme: .https, host: "other.example", port: 443)

    private func blob(_ text: String) -> Blob {
        let bytes = Array(text.utf8)
        return Blob(bytes.span)
    }

    private func challenge(_ name: String, url: String) -> ChallengeSettings {
        let token = TokenSettings(
            grant: .clientCredentials, url: WebURL(url), revocation: WebURL("https://other.example/revoke"))
        return ChallengeSettings(
            name: name, location: .upstream("bank"), credential: "c",
            kind: SchemeSettings(schemes: [.bearer], token: token))
    }

    private func plan(_ own: [String: ConnectionSettings]) -> UpstreamPlan {
        let base = WebURL(origin: Self.bank, path: "/")
        let site = LoginSite(
            ProtectedUpstream(name: "bank", url: base),
            [
                challenge("one", url: "https://id.example/token"), challenge("two", url: "https://id.example/token"),
                challenge("here", url: "https://bank.example/token"),
            ], LoginMaterial())
        let (logins, origins) = site.authenticators()
        var connections = ConnectionSettings()
        connections.authorities = blob("bank-ca")
        connections.certificate = blob("bank-certificate")
        connections.key = blob("bank-key")
        return UpstreamPlan(
            name: "bank", base: base, connections: connections, logins: logins, loginOrigins: origins,
            loginConnections: own)
    }

    @Test("a login's own certificate goes to the servers of its token, and nothing else does")
    func own() {
        var own = ConnectionSettings()
        own.certificate = blob("own")
        let plan = plan(["one": own])
        #expect(plan.connections(to: Self.server, of: "one") == own)
        #expect(plan.connections(to: Self.other, of: "one") == own, "the revocation")
        // Another login at the same server, the same at another server, and a caller without a login.
        for (origin, login) in [(Self.server, "two"), (Self.other, "two"), (Self.server, "")] {
            let settings = plan.connections(to: origin, of: login)
            #expect(settings.certificate == nil && settings.key == nil && settings.authorities == blob("bank-ca"))
        }
        #expect(plan.connections(to: Self.bank, of: "one") == plan.connections)
        // A diagnosis of the origin uses the login's settings.
        #expect(plan.connections(to: Self.server, of: nil) == own)
    }

    @Test("a token server at the upstream's own origin gets what is configured for the token")
    func sameOrigin() {
        var own = ConnectionSettings()
        own.certificate = blob("own")
        let plan = plan(["here": own])
        #expect(plan.connections(to: Self.bank, of: "here") == own)
        #expect(plan.connections(to: Self.bank, of: "one") == plan.connections)
    }
}

@Suite("Logins by handlers of the program's own", .serialized)
struct OwnLoginTests {
    private struct Gateway: GatewayChallengeHandler {
        let gatewayName = "inner"

        func canHandleResponse(_ response: ExaminedResponse) -> Bool { response.status == 418 }
        func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer { .submitSuccess }
    }

    private struct Check: SecurityCheckChallengeHandler {
        let securityCheck = "PinCodeAttempts"

        func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
            .cancel(reason: "no")
        }
    }

    private func logins(_ challenges: String) throws -> [Authenticator] {
        OwnHandlers.set([
            "gateway": .gateway(Gateway()), "check": .securityCheck(Check()),
            "basic": .challenges(BasicChallengeHandler()),
        ])
        defer { OwnHandlers.set([:]) }
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: a }]
            upstreams:
              a: { url: "http://127.0.0.1:1/", mobilefirst: { application: x, platform: ios, version: "1" } }
            challenges: \(challenges)
            """
        let (settings, problems) = Settings.parse(
            Array(text.utf8), file: "f", environment: [:], handlers: OwnHandlers.names)
        let loaded = try #require(settings, "\(problems)")
        return LoginSite(loaded.upstreams[0].protected, loaded.challenges, LoginMaterial()).authenticators().logins.all
    }

    @Test("a gateway login by an own handler has the challenge's name and recognises the handler's page")
    func gateway() throws {
        let logins = try logins("[{ name: portal, upstream: a, handler: gateway }]")
        let login = try #require(logins.first { $0.name == "portal" })
        let url = try #require(WebURL("http://127.0.0.1:1/"))
        let detector = try #require(login.trigger.detector)
        #expect(detector.examine(ExaminedResponse(status: 418, url: url), hasSession: false) == .challenged())
        #expect(detector.examine(ExaminedResponse(status: 200, url: url), hasSession: false) == .pass)
        // The key has no generated part, so its session survives a reload.
        #expect(login.key.credential.isEmpty)
    }

    @Test("a login by an own handler for HTTP challenges has the challenge's name")
    func challenges() throws {
        #expect(try logins("[{ name: b, at: \"127.0.0.1:1/*\", handler: basic }]").contains { $0.name == "b" })
    }

    @Test("an own handler for a security check is called by the upstream's MobileFirst client")
    func securityCheck() throws {
        let logins = try logins("[{ name: pin, upstream: a, handler: check }]")
        #expect(logins.map(\.isOfUpstream) == [true])
        #expect(logins[0].asks == ["pin"])
    }
}

@Suite("Threads for Kerberos tickets")
struct TicketThreadTests {
    private struct NoThread: Error {}

    @Test("a ticket fails at once if no thread can be started for it")
    func noThread() async {
        let office = SystemTicketProvider { _ in throw NoThread() }
        for _ in 0..<100 {
            let error = await #expect(throws: TicketError.self) {
                try await office.ticket(TicketRequest(service: "HTTP@www.example.com"))
            }
            #expect(error?.kind == .unknown && error?.reason.contains("NoThread") == true)
        }
    }

    @Test("if the Kerberos library hangs, further tickets fail at once and start no threads")
    func hanging() async {
        // The jobs are never run.
        let begun = Mutex<[@Sendable () -> Void]>([])
        let office = SystemTicketProvider { body in begun.withLock { $0.append(body) } }
        for _ in 0..<16 { Task { _ = try? await office.ticket(TicketRequest(service: "HTTP@www.example.com")) } }
        while begun.withLock({ $0.count }) < 16 { await Task.yield() }
        let error = await #expect(throws: TicketError.self) {
            try await office.ticket(TicketRequest(service: "HTTP@www.example.com"))
        }
        #expect(error?.kind == .unknown && begun.withLock { $0.count } == 16)
    }
}

@Suite("Credential sources of a configuration")
struct CredentialSnapshotTests {
    private struct Nobody: SecretAsker {
        func ask(_ question: String, id: String) throws(AskFailure) -> Secret { Secret("asked") }
    }

    private static func settings(_ file: String) -> CredentialSettings {
        var settings = CredentialSettings.standard
        settings.sources = [.environmentFile(file)]
        return settings
    }

    @Test("a plan has its own sources, before they are in force and after they were replaced")
    func snapshots() async throws {
        let folder = try TemporaryFolder.make("snapshots")
        defer { TemporaryFolder.remove(folder) }
        for name in ["old", "new"] {
            let text = "COUNTERSIGN_PIN__PIN=\(name)\n"
            try FileSystem.write(Array(text.utf8), to: "\(folder)/\(name)", mode: 0o600)
        }
        let sources = CredentialComposition(
            Self.settings("\(folder)/old"), asker: Nobody(), oneTimePasswords: NoOneTimePasswords())
        func pin(_ provider: any CredentialProvider) async throws -> String? {
            try await provider.credential(named: "pin")?["pin"]?.revealText()
        }
        let old = sources.present
        let new = sources.snapshot(of: Self.settings("\(folder)/new"), needed: [:])
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: a }]
            upstreams: { a: { url: "http://127.0.0.1:1/" } }
            challenges: [{ name: k, upstream: a, credential: { by-user: { root: pin } }, inject: { X-Key: "{pin}" } }]
            """
        let (loaded, problems) = Settings.parse(Array(text.utf8), file: "f", environment: [:])
        let settings = try #require(loaded, "\(problems)")
        let plans = try ProxyComposition(settings: settings, material: LoginMaterial(), sources: new.sources)
            .upstreams()
        let everybody = plans.flatMap(\.forEverybody)
        #expect(everybody.count == 2 && everybody.allSatisfy { $0.sources.generation == new.generation })
        #expect(new.generation > old.generation)
        // The moment of a reload in which the workers have the new plan already.
        for plan in everybody { #expect(try await pin(plan.sources.credentials) == "new") }
        #expect(try await pin(sources) == "old")
        sources.replace(by: new)
        // The moment in which a login of the former plan looks its value up.
        #expect(try await pin(sources) == "new")
        #expect(try await pin(old) == "old")
        #expect(sources.present.valueSource(of: "pin")?.name.contains("/new") == true)
        #expect(old.valueSource(of: "pin")?.name.contains("/old") == true)
    }
}
