// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("self registration")
struct RegistrationTests {
    @Test("both alphabets of base64 are understood", arguments: [true, false])
    func alphabets(isURLSafe: Bool) throws {
        var key = try TestKey.shared.get()
        key.isURLSafe = isURLSafe
        let server = testServer()
        let phone = try TestPhone.registered(at: server, key: key)
        #expect(server.clients == [phone.id])
        #expect(server.recorder.record.registrations == 1)
    }

    @Test("the client's identifier is the last segment of Location")
    func location() throws {
        let server = testServer()
        var phone = try TestPhone { server.respond(to: $0) }
        let response = try phone.register()
        #expect(response.status == 201)
        #expect(response.field("Location") == "/mfp/api/registration/clients/\(server.clients[0])")
    }

    @Test("a signature by another key is refused")
    func wrongKey() throws {
        let server = testServer()
        let phone = try TestPhone { server.respond(to: $0) }
        var parts = try phone.key.sign(phone.registration, kid: nil)
        parts[2] = try TestKey().sign(phone.registration, kid: nil)[2]
        let response = server.respond(to: phone.registrationRequest("POST", "", parts))
        #expect(response.status == 400)
        #expect(server.clients == [])
        #expect(server.recorder.record.violations.count == 1)
    }

    @Test("a changed payload is refused")
    func changedPayload() throws {
        let server = testServer()
        let phone = try TestPhone { server.respond(to: $0) }
        var parts = try phone.key.sign(phone.registration, kid: nil)
        parts[1] = Base64.encodeURL((["device": ["id": "other"]] as JSON).bytes)
        #expect(server.respond(to: phone.registrationRequest("POST", "", parts)).status == 400)
    }

    @Test("an algorithm other than RS256, or a kid at the first registration, is refused")
    func wrongHeader() throws {
        let server = testServer()
        let phone = try TestPhone { server.respond(to: $0) }
        let other = try phone.key.sign(phone.registration, kid: nil, algorithm: "RS512")
        #expect(server.respond(to: phone.registrationRequest("POST", "", other)).status == 400)
        let kid = try phone.key.sign(phone.registration, kid: "me")
        #expect(server.respond(to: phone.registrationRequest("POST", "", kid)).status == 400)
    }

    @Test(
        "a payload that lacks something is refused",
        arguments: [
            ["application": ["id": "a", "clientPlatform": "web"]],
            ["device": ["id": "d"], "application": ["clientPlatform": "web"]],
            ["device": ["id": "d"], "application": ["id": "a", "clientPlatform": "linux", "version": "1"]],
            ["device": ["id": "d"], "application": ["id": "a", "clientPlatform": "ios"]],
        ] as [JSON])
    func incomplete(payload: JSON) throws {
        let server = testServer()
        var phone = try TestPhone { server.respond(to: $0) }
        #expect(try phone.register(payload).status == 400)
    }

    @Test("an update needs the client's key and its kid")
    func update() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        let right = try phone.key.sign(phone.registration, kid: phone.id)
        #expect(server.respond(to: phone.registrationRequest("PUT", "/\(phone.id)", right)).status == 200)
        let bare = try phone.key.sign(phone.registration, kid: nil)
        #expect(server.respond(to: phone.registrationRequest("PUT", "/\(phone.id)", bare)).status == 400)
        let foreign = try TestKey().sign(phone.registration, kid: phone.id)
        #expect(server.respond(to: phone.registrationRequest("PUT", "/\(phone.id)", foreign)).status == 400)
        let unknown = server.respond(to: phone.registrationRequest("PUT", "/nobody", right))
        #expect(unknown.json?["errorCode"] == "INVALID_CLIENT_ID")
    }

    @Test("a client reads its own registration with an assertion")
    func read() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        let path = "/mfp/api/registration/v1/self/\(phone.id)"
        let query = "client_assertion_type=\(percentEncoded(assertionType))&client_assertion="
        let assertion = try phone.assertion(jti: .null)
        let response = server.respond(to: FakeRequest("GET", "\(path)?\(query)\(assertion)"))
        #expect(response.json?["registration"]?["device"]?["id"] == "d1")
        #expect(server.respond(to: FakeRequest("GET", "\(path)?\(query)x.y.z")).status == 401)
    }
}
