// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@Suite("Form login of WebSEAL")
struct WebSEALTests {
    private static let form = """
        <form method="POST" action="/pkmslogin.form"><input name="username"><input type="password" name="password">
        <input type="hidden" name="login-form-type" value="pwd"><input type="hidden" name="token" value="Un&#107;nown"></form>
        """
    private static let page = Portal.get(
        "/app/home", 200, form, set: ["PD-S-SESSION-ID=first; Path=/; Secure; HttpOnly"])

    private static func post(
        _ status: Int, _ body: String = "", set cookies: [String] = [], to location: String? = nil,
        _ place: SourceLocation = #_sourceLocation
    ) -> ScriptedStep {
        Portal.post(
            "/pkmslogin.form", status, body, set: cookies, to: location, sends: "PD-S-SESSION-ID=first",
            form: "token=Unknown&username=ann-u&password=pass%22word&login-form-type=pwd", place)
    }

    @Test("WebSEAL's 302 to the first requested address is a success, with the earlier session cookie or a new one")
    func redirect() async throws {
        let rig = Portal.rig([
            Self.page,
            Self.post(
                302, set: ["PD-S-SESSION-ID=second; Path=/; Secure", "LtpaToken2=t; Path=/"], to: Portal.address),
            Portal.get(sends: "PD-S-SESSION-ID=second; LtpaToken2=t"),
        ])
        let session = try await rig.logIn(Portal.login(.webSEAL))
        #expect(try rig.cookies(of: session) == "PD-S-SESSION-ID=second; LtpaToken2=t")
        let kept = Portal.rig([
            Self.page, Self.post(302, to: "/app/home"), Portal.get(sends: "PD-S-SESSION-ID=first"),
        ])
        let established = try await kept.logIn(Portal.login(.webSEAL))
        #expect(try kept.cookies(of: established) == "PD-S-SESSION-ID=first")
    }

    @Test("WebSEAL's 200 with login_success.html is verified at the challenged address")
    func successPage() async throws {
        let rig = Portal.rig([
            Self.page, Self.post(200, "<p>Your login was successful.</p>"), Portal.get(sends: "PD-S-SESSION-ID=first"),
        ])
        _ = try await rig.logIn(Portal.login(.webSEAL))
    }

    @Test("WebSEAL's redirect with TAM_OP=login leads to the form's address if the page is elsewhere")
    func elsewhere() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 302, to: "https://login.example.com/?TAM_OP=login&URL=%2Fapp"),
            Portal.post(
                "/pkmslogin.form", 302, set: ["PD-S-SESSION-ID=s; Path=/; Secure"], to: Portal.address, sends: nil,
                form: "username=ann-u&password=pass%22word&login-form-type=pwd"),
            Portal.get(sends: "PD-S-SESSION-ID=s"),
        ])
        _ = try await rig.logIn(Portal.login(.webSEAL))
    }

    @Test(
        "WebSEAL's form again, or its message of a wrong password, is a rejection",
        arguments: [form, "<p>HPDIA0200W Authentication failed.</p>", form + "<!-- hpdia0200w -->"])
    func wrong(_ body: String) async throws {
        let rig = Portal.rig([Self.page, Self.post(200, body)])
        await rig.expectRejection(try Portal.login(.webSEAL))
    }

    @Test(
        "WebSEAL's locked account is reported as locked, even if the answer has the form",
        arguments: ["HPDIA0306W", "HPDIA0234W", "HPDIA0309W", "HPDIA0205W"])
    func locked(_ code: String) async throws {
        let rig = Portal.rig([Self.page, Self.post(200, "<p>\(code)</p>\(Self.form)")])
        await rig.expectRejection(try Portal.login(.webSEAL), .accountLocked)
    }

    @Test("a password that WebSEAL calls expired is not sent again, and the reply says why")
    func expired() async throws {
        let rig = Portal.rig([Self.page, Self.post(200, "<p>HPDIA0204W</p>")])
        let failure = await rig.lose(try Portal.login(.webSEAL))
        #expect(failure.code == .rejected && failure.detail.hasPrefix("The password has expired"))
        #expect(rig.latches.keys == [Portal.key])
    }

    @Test(
        "WebSEAL's limit of sessions and its uncached request leave the outcome unknown",
        arguments: [(200, "Additional Login Denied"), (200, "0x38b9a41f"), (500, "Request Caching Failed 38cf013d")])
    func unknown(_ status: Int, _ body: String) async throws {
        let rig = Portal.rig([Self.page, Self.post(status, "<p>\(body)</p>")])
        _ = await rig.expectUnknown(try Portal.login(.webSEAL))
    }

    @Test("WebSEAL's redirect states the outcome by TAM_OP")
    func operations() async throws {
        func end(_ operation: String) async throws -> (LoginFailure, LoginRig) {
            let rig = Portal.rig([
                Self.page, Self.post(302, to: "https://login.example.com/?TAM_OP=\(operation)&X=1"),
            ])
            return (await rig.lose(try Portal.login(.webSEAL)), rig)
        }
        for (operation, code) in [
            ("login", LoginFailure.Code.rejected), ("acct_locked", .accountLocked),
            ("acct_inactivated", .accountLocked),
            ("passwd_exp", .rejected), ("too_many_sessions", .failed), ("error", .failed),
        ] {
            let (failure, rig) = try await end(operation)
            #expect(failure.code == code, "\(operation)")
            #expect(rig.latches.all.isEmpty == (code == .failed), "\(operation)")
        }
    }
}
