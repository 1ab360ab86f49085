// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("MobileFirst registrations")
struct MobileFirstRegistrationTests {
    private static let quick: [ScriptedStep] = [.preauthorize(), .authorization, .token]
    private static func login(_ client: MobileFirstClient) -> any SessionLogin { client.login(scope: [], handlers: []) }

    @Test("a registration holds the key, the application and the device, signed in three parts")
    func registers() async throws {
        let rig = LoginRig([.register] + Self.quick)
        _ = try await rig.logIn(Self.login(try Bank.client()))
        let data = try #require(rig.requests.sent.first?.json?["signedRegistrationData"])
        let parts = try ["header", "payload", "signature"].map { try #require(data[$0]?.stringValue) }
        #expect(parts.allSatisfy { $0.utf8.allSatisfy { $0 != 0x3D && $0 != 0x2B && $0 != 0x2F } })
        let header = JSONValue(parsing: Base64.decode(parts[0]) ?? [])
        #expect(header?["alg"] == "RS256" && header?["jwk"]?["e"] == "AQAB" && header?["jwk"]?["kid"] == nil)
        #expect(header?["jwk"]?["n"]?.stringValue?.hasPrefix("-_8BAQ") == true)
        let payload = JSONValue(parsing: Base64.decode(parts[1]) ?? [])
        #expect(payload?["application"] == ["id": "com.sample.pincode", "clientPlatform": "ios", "version": "1.0"])
        #expect(payload?["attributes"] == ["sdk_protocol_version": 1])
        #expect(payload?["device"]?["id"] == .string(String(repeating: "01", count: 16)))
        #expect(Base64.decode(parts[2]) == Array("signed by 1: \(parts[0]).\(parts[1])".utf8))
    }

    @Test("an assertion after registration names the client as well as its key")
    func keyIdentifier() async throws {
        let rig = LoginRig([.register] + Self.quick)
        _ = try await rig.logIn(Self.login(try Bank.client()))
        let assertion = try #require(rig.requests.sent.last?.form("client_assertion")?.split(separator: "."))
        #expect(JSONValue(parsing: Base64.decode(assertion[0]) ?? [])?["jwk"]?["kid"] == "client-1")
    }

    @Test("a web client has no version, adds no scope, and has another redirect and audience")
    func web() async throws {
        let client = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(platform: .web), keys: ScriptedKeys())
        let rig = LoginRig([.register] + Self.quick)
        _ = try await rig.logIn(Self.login(client))
        let sent = rig.requests.sent
        let signed = sent[0].json?["signedRegistrationData"]?["payload"]?.stringValue
        let payload = JSONValue(parsing: signed.flatMap { Base64.decode($0) } ?? [])
        #expect(payload?["application"] == ["id": "com.sample.pincode", "clientPlatform": "web"])
        #expect(payload?["attributes"] == nil)
        #expect(sent[1].json?["scope"] == "")
        #expect(sent[2].query("redirect_uri") == "\(Bank.api)/az/v1/authorization/redirect/client-1")
        let assertion = try #require(sent[3].form("client_assertion")?.split(separator: "."))
        let claims = JSONValue(parsing: Base64.decode(assertion[1]) ?? [])
        #expect(claims?["iss"] == "com.sample.pincode$web" && claims?["aud"] == "az/v1/token")
    }

    @Test("a registration outlives the process, with its key")
    func kept() async throws {
        let store = MemoryStore()
        _ = try await LoginRig([.register] + Self.quick, store: store).logIn(Self.login(try Bank.client()))
        #expect(store.names == ["mobilefirst.bank.com_2esample_2epincode"])

        let keys = ScriptedKeys()
        let rig = LoginRig(Self.quick, store: store)
        _ = try await rig.logIn(Self.login(try Bank.client(keys)))
        #expect(keys.count == 0)
        let assertion = try #require(rig.requests.sent.last?.form("client_assertion")?.split(separator: "."))
        #expect(Base64.decode(assertion[2])?.starts(with: "signed by 1: ".utf8) == true)
    }

    @Test("a MobileFirst client registers once for all its logins")
    func once() async throws {
        let client = try Bank.client()
        _ = try await LoginRig([.register] + Self.quick).logIn(Self.login(client))
        _ = try await LoginRig(Self.quick).logIn(Self.login(client))
    }

    @Test("a registration stored for another application, platform or address is not used")
    func other() async throws {
        let store = MemoryStore()
        _ = try await LoginRig([.register] + Self.quick, store: store).logIn(Self.login(try Bank.client()))
        var elsewhere = try Bank.configuration()
        elsewhere.api = try #require(WebURL("https://other.example.com/mfp/api"))
        let android = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(platform: .android), keys: ScriptedKeys())
        _ = try await LoginRig([.register] + Self.quick, store: store).logIn(Self.login(android))
        let moved = MobileFirstClient(name: "bank", configuration: elsewhere, keys: ScriptedKeys())
        let rig = LoginRig(
            [
                ScriptedStep(
                    .post, "https://other.example.com/mfp/api/registration/v1/self",
                    .failure(SideRequestError(.unreachable, reason: "")))
            ], store: store)
        #expect(await rig.lose(Self.login(moved)).isUnknown)
    }

    @Test(
        "another version updates the registration, and a server that refuses gets a new one",
        arguments: [(200, false), (403, true), (404, true), (400, true)])
    func version(status: Int, isRegisteredAnew: Bool) async throws {
        let store = MemoryStore()
        _ = try await LoginRig([.register] + Self.quick, store: store).logIn(Self.login(try Bank.client()))
        let client = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(version: "2.0"), keys: ScriptedKeys())
        let update = ScriptedStep(
            .put, "\(Bank.api)/registration/v1/self/client-1",
            .success(
                SideResponse(status: status, body: Array(#"{"errorCode":"INVALID_CLIENT_ID"}"#.utf8))))
        let rig = LoginRig([update] + (isRegisteredAnew ? [.register] : []) + Self.quick, store: store)
        _ = try await rig.logIn(Self.login(client))
        let same = LoginRig(Self.quick, store: store)
        let again = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(version: "2.0"), keys: ScriptedKeys())
        _ = try await same.logIn(Self.login(again))
    }

    @Test(
        "a stored registration that cannot be used is replaced",
        arguments: ["", "{}", "no JSON", #"{"client-id":"a b"}"#])
    func unusableKept(text: String) async throws {
        let store = MemoryStore()
        try store.save(Secret(text), as: "mobilefirst.bank.com_2esample_2epincode")
        _ = try await LoginRig([.register] + Self.quick, store: store).logIn(Self.login(try Bank.client()))
        _ = try await LoginRig(Self.quick, store: store).logIn(Self.login(try Bank.client()))
    }

    @Test("a failing state store does not prevent a MobileFirst login")
    func brokenStore() async throws {
        let rig = LoginRig([.register] + Self.quick, store: MemoryStore(failure: StateError(reason: "disk full")))
        _ = try await rig.logIn(Self.login(try Bank.client()))
        #expect(rig.steps.contains("register: the registration could not be kept, disk full"))
    }

    @Test(
        "a refused registration reports the remedy",
        arguments: [(400, "platform"), (401, "authentic"), (403, "authentic"), (404, "platform"), (500, "500")])
    func refused(status: Int, told: String) async throws {
        let rig = LoginRig([.register.replying(status)])
        let failure = await rig.lose(Self.login(try Bank.client()))
        #expect(failure.isUnknown && failure.detail.contains(told))
    }

    @Test("a registration without a client identifier fails", arguments: ["", "/", "/a/b%20c/?x=/y", "/a b"])
    func location(location: String) async throws {
        let fields: HTTPFields = location.isEmpty ? [:] : [.location: location]
        let register = ScriptedStep.register.replying(201, fields)
        if location == "/a/b%20c/?x=/y" {
            let refused = ScriptedStep.preauthorize(client: "b%20c").replying(404)
            #expect(await LoginRig([register, refused]).lose(Self.login(try Bank.client())).isUnknown)
        } else {
            #expect(await LoginRig([register]).lose(Self.login(try Bank.client())).isUnknown)
        }
    }
}

@Suite("Confidential clients")
struct ConfidentialClientTests {
    private static let client = Credential(
        name: "api-client", fields: ["client-id": Secret("test"), "client-secret": Secret("s3:cret")])
    private static let request = ScriptedStep(
        .post, "\(Bank.api)/az/v1/token",
        .success(
            SideResponse(
                status: 200, body: Array(#"{"access_token":"abc","token_type":"bearer","expires_in":60}"#.utf8)))
    ) { request in
        // "test:s3:cret"
        request.fields[.authorization] == "Basic dGVzdDpzMzpjcmV0" && request.form("grant_type") == "client_credentials"
    }

    private static func login(scope: String = "", retry: Duration? = nil) throws -> ConfidentialClientLogin {
        ConfidentialClientLogin(
            tokenURL: try #require(WebURL("\(Bank.api)/az/v1/token")),
            key: LatchKey(origin: Bank.origin, challenge: "api", credential: "api-client"), scope: Scope(text: scope),
            retryRejectedAfter: retry)
    }

    private static func rig(_ steps: [ScriptedStep], _ credential: Credential? = nil) -> LoginRig {
        LoginRig(steps, credentials: [credential ?? client])
    }

    @Test("a confidential client obtains a token by identifier and secret")
    func wins() async throws {
        let rig = Self.rig([Self.request])
        let session = try await rig.logIn(try Self.login())
        #expect(session.fields.first?.value == Secret("Bearer abc") && session.expiresAt == LoginRig.now + 60_000)
        #expect(rig.requests.sent[0].form("scope") == nil)
        #expect(rig.requests.sent[0].fields[.contentType] == "application/x-www-form-urlencoded")
    }

    @Test("a scope is asked for where one is configured")
    func scope() async throws {
        let rig = Self.rig([Self.request])
        _ = try await rig.logIn(try Self.login(scope: "sendMessage accessRestricted"))
        #expect(rig.requests.sent[0].form("scope") == "accessRestricted sendMessage")
    }

    @Test(
        "a rejected secret is latched and not sent again",
        arguments: [
            (401, ""), (401, #"{"error":"invalid_client"}"#), (400, #"{"error":"invalid_client"}"#),
            (400, #"{"errorCode":"INVALID_CLIENT_ID"}"#), (500, #"{"error":"invalid_client"}"#),
            (200, #"{"error":"invalid_client"}"#), (403, #"{"error":"invalid_client"}"#),
        ])
    func rejected(status: Int, body: String) async throws {
        let rig = Self.rig([Self.request.replying(status, [:], body)])
        #expect(await rig.lose(try Self.login()).code == .rejected)
        #expect(rig.latches.all.map(\.reason) == [.rejected])
        #expect(await rig.lose(try Self.login()).code == .latched)
    }

    @Test(
        "other answers say nothing about the secret",
        arguments: [
            (403, ""), (400, #"{"error":"invalid_scope"}"#), (400, ""), (429, ""), (500, ""), (200, "<html>"),
            (302, ""),
            (404, ""), (409, ""),
        ])
    func unknown(status: Int, body: String) async throws {
        let rig = Self.rig([Self.request.replying(status, [.retryAfter: "7"], body)])
        let failure = await rig.lose(try Self.login(scope: "a"))
        #expect(failure.isUnknown && failure.challenge == "api" && rig.latches.all.isEmpty)
        #expect(status == 200 || failure.retryAt == LoginRig.now + 7000)
    }

    @Test("a confidential client's secret whose answer does not judge it is not sent again at once")
    func budget() async throws {
        let rig = Self.rig([Self.request.replying(500)])
        for _ in 0..<2 { #expect(await rig.lose(try Self.login()).code == .failed) }
        #expect(rig.requests.sent.count == 1)
    }

    @Test("a lost connection says nothing about the confidential client's secret")
    func lost() async throws {
        let rig = Self.rig([Self.request.replying(.failure(SideRequestError(.timedOut, reason: "")))])
        #expect(await rig.lose(try Self.login()).code == .timedOut)
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a 409 conflict of the token endpoint has the request sent again")
    func conflict() async throws {
        _ = try await Self.rig([Self.request.conflicting, Self.request]).logIn(try Self.login())
    }

    @Test("a missing or unusable field of the confidential client is reported, and nothing is sent")
    func fields() async throws {
        for fields in [
            ["client-id": Secret("test-id")], ["client-secret": Secret("sec-ret")],
            ["client-id": Secret("te:st"), "client-secret": Secret("sec-ret")],
        ] {
            let rig = Self.rig([], Credential(name: "api-client", fields: fields))
            #expect(await rig.lose(try Self.login()).code == .noCredential)
        }
    }
}

@Suite("Clients of MobileFirst servers, over reloads")
struct KnownClientTests {
    private struct NoTickets: TicketProvider {
        func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
            throw TicketError(.unsupported, reason: "there is no GSS-API")
        }
    }

    @Test("a client is kept as long as a plan has it and its configuration is the same, and no longer")
    func lifetime() throws {
        let material = LoginMaterial(
            digests: NoDigests(), keys: ScriptedKeys(), messageKeys: EchoKeys(), tickets: NoTickets(), hasNTLM: false)
        let configuration = try Bank.configuration()
        var plan: MobileFirstClient? = material.client(named: "bank", identity: "ann", configuration)
        weak let former = plan
        // The next plan is made before the former one is gone.
        var next: MobileFirstClient? = material.client(named: "bank", identity: "ann", configuration)
        #expect(former === next)
        plan = nil
        #expect(former != nil)
        next = material.client(named: "bank", identity: "ann", try Bank.configuration(version: "2.0"))
        #expect(former == nil)
        #expect(material.client(named: "bank", identity: "bob", configuration) !== next)
        _ = plan
    }
}
