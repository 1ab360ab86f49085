// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("a gateway in front of MobileFirst")
struct GatewayScriptTests {
    @Test("the form on preauthorize with 200, then the login, then preauthorize itself", arguments: [303, 302])
    func preauthorize(status: Int) throws {
        let server = testServer { $0.guarded = [.preauthorize] }
        server.gateway.configure { $0.successStatus = status }
        var phone = try TestPhone.registered(at: server)
        let form = try phone.preauthorize("")
        #expect(form.status == 200)
        #expect(form.text.contains("j_security_check"))
        var login = FakeRequest(
            "POST", "/mfp/api/preauth/v1/j_security_check",
            fields: [("Content-Type", "application/x-www-form-urlencoded")],
            body: Array("j_username=ann&j_password=demo".utf8))
        login.fields.append(("Cookie", cookie(form)))
        #expect(server.isResponsible(for: login))
        let redirect = server.respond(to: login)
        #expect(redirect.status == status)
        #expect(redirect.field("Location") == "/mfp/api/preauth/v1/preauthorize")
        let session = cookie(redirect)
        #expect(session != cookie(form))
        let id = phone.id
        phone = try TestPhone { request in
            var request = request
            request.fields.append(("Cookie", session))
            return server.respond(to: request)
        }
        phone.id = id
        // Tomcat puts the saved request in the place of the first one to its address.
        #expect(try phone.preauthorize("PinCodeAttempts").status == 200)
        #expect(try phone.preauthorize("PinCodeAttempts").status == 401)
        #expect(server.recorder.record.logins["gateway"] == 1)
    }

    @Test("the form on resources only")
    func resource() throws {
        let server = testServer { $0.guarded = [.resource] }
        let phone = try TestPhone.registered(at: server)
        #expect(try phone.preauthorize("").status == 200)
        #expect(try phone.resource("bank/balance", token: nil).text.contains("j_security_check"))
    }
}

/// The `name=value` of the cookie that a response sets.
func cookie(_ response: FakeResponse) -> String {
    String((response.field("Set-Cookie") ?? "").prefix { $0 != ";" })
}
