// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("MobileFirst registrations")
struct MobileFirstRegistrationTests {
    private static let quick: [ScriptedStep] = [.preauthorize(), .authorization, .token]
    private static func login(_ client: MobileFirstClient) -> any SessionLogin { client.login(scope: [], handlers: []) }

    @Test("a registration tells the key, the application and the device, signed in three parts")
    func registers() async throws {
        let world = World([.register] + Self.quick)
        _ = try await world.win(Self.login(try Bank.client()))
        let data = try #require(world.requests.sent.first?.json?["signedRegistrationData"])
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

    @Test("a later assertion names the client beside its key")
    func keyIdentifier() async throws {
        let world = World([.register] + Self.quick)
        _ = try await world.win(Self.login(try Bank.client()))
        let assertion = try #require(world.requests.sent.last?.form("client_assertion")?.split(separator: "."))
        #expect(JSONValue(parsing: Base64.decode(assertion[0]) ?? [])?["jwk"]?["kid"] == "client-1")
    }

    @Test("a web client has no version, asks for nothing of its own, and has another redirect and audience")
    func web() async throws {
        let client = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(platform: .web), keys: ScriptedKeys())
        let world = World([.register] + Self.quick)
        _ = try await world.win(Self.login(client))
        let sent = world.requests.sent
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
        _ = try await World([.register] + Self.quick, store: store).win(Self.login(try Bank.client()))
        #expect(store.names == ["mobilefirst.bank.com_2esample_2epincode"])

        let keys = ScriptedKeys()
        let world = World(Self.quick, store: store)
        _ = try await world.win(Self.login(try Bank.client(keys)))
        #expect(keys.count == 0)
        let assertion = try #require(world.requests.sent.last?.form("client_assertion")?.split(separator: "."))
        #expect(Base64.decode(assertion[2])?.starts(with: "signed by 1: ".utf8) == true)
    }

    @Test("one client registers once for all its logins")
    func once() async throws {
        let client = try Bank.client()
        _ = try await World([.register] + Self.quick).win(Self.login(client))
        _ = try await World(Self.quick).win(Self.login(client))
    }

    @Test("what is kept for another application, platform or address is not used")
    func other() async throws {
        let store = MemoryStore()
        _ = try await World([.register] + Self.quick, store: store).win(Self.login(try Bank.client()))
        var elsewhere = try Bank.configuration()
        elsewhere.api = try #require(WebURL("https://other.example.com/mfp/api"))
        let android = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(platform: .android), keys: ScriptedKeys())
        _ = try await World([.register] + Self.quick, store: store).win(Self.login(android))
        let moved = MobileFirstClient(name: "bank", configuration: elsewhere, keys: ScriptedKeys())
        let world = World(
            [
                ScriptedStep(
                    .post, "https://other.example.com/mfp/api/registration/v1/self",
                    .failure(SideRequestError(.unreachable, reason: "")))
            ], store: store)
        #expect(await world.lose(Self.login(moved)).isUnknown)
    }

    @Test(
        "another version updates the registration, and a server that refuses gets a new one",
        arguments: [(200, false), (403, true), (404, true), (400, true)])
    func version(status: Int, isRegisteredAnew: Bool) async throws {
        let store = MemoryStore()
        _ = try await World([.register] + Self.quick, store: store).win(Self.login(try Bank.client()))
        let client = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(version: "2.0"), keys: ScriptedKeys())
        let update = ScriptedStep(
            .put, "\(Bank.api)/registration/v1/self/client-1",
            .success(
                SideResponse(status: status, body: Array(#"{"errorCode":"INVALID_CLIENT_ID"}"#.utf8))))
        let world = World([update] + (isRegisteredAnew ? [.register] : []) + Self.quick, store: store)
        _ = try await world.win(Self.login(client))
        let same = World(Self.quick, store: store)
        let again = MobileFirstClient(
            name: "bank", configuration: try Bank.configuration(version: "2.0"), keys: ScriptedKeys())
        _ = try await same.win(Self.login(again))
    }

    @Test("what is kept and cannot be used is replaced", arguments: ["", "{}", "no JSON", #"{"client-id":"a b"}"#])
    func unusableKept(text: String) async throws {
        let store = MemoryStore()
        try store.save(Secret(text), as: "mobilefirst.bank.com_2esample_2epincode")
        _ = try await World([.register] + Self.quick, store: store).win(Self.login(try Bank.client()))
        _ = try await World(Self.quick, store: store).win(Self.login(try Bank.client()))
    }

    @Test("a state store that fails does not keep anybody from logging in")
    func brokenStore() async throws {
        let world = World([.register] + Self.quick, store: MemoryStore(failure: StateError(reason: "disk full")))
        _ = try await world.win(Self.login(try Bank.client()))
        #expect(world.steps.contains("register: the registration could not be kept, disk full"))
    }

    @Test(
        "a refused registration says what to do",
        arguments: [(400, "platform"), (401, "authentic"), (403, "authentic"), (404, "platform"), (500, "500")])
    func refused(status: Int, told: String) async throws {
        let world = World([.register.replying(status)])
        let failure = await world.lose(Self.login(try Bank.client()))
        #expect(failure.isUnknown && failure.detail.contains(told))
    }

    @Test("a registration must name the client", arguments: ["", "/", "/a/b%20c/?x=/y", "/a b"])
    func location(location: String) async throws {
        let fields: HTTPFields = location.isEmpty ? [:] : [.location: location]
        let register = ScriptedStep.register.replying(201, fields)
        if location == "/a/b%20c/?x=/y" {
            let refused = ScriptedStep.preauthorize(client: "b%20c").replying(404)
            #expect(await World([register, refused]).lose(Self.login(try Bank.client())).isUnknown)
        } else {
            #expect(await World([register]).lose(Self.login(try Bank.client())).isUnknown)
        }
    }
}
