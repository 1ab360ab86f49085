// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@Suite("Sessions are ended at their servers")
struct LogoutTests {
    private static let url = WebURL(origin: Origin(scheme: .https, host: "www.example.com"), path: "/pkmslogout")

    private func cookies(_ line: String) throws -> Session {
        var jar = CookieJar()
        let isKept = jar.store(line, from: Self.url, now: LoginRig.now)
        try #require(isKept)
        return Session(cookies: SessionCookies(jar))
    }

    private func logOut(_ logout: any SessionLogout, of session: Session, in rig: LoginRig) async -> LoginFailure? {
        do {
            try await logout.end(session, rig.conversation)
            return nil
        } catch {
            return error
        }
    }

    @Test("a gateway's session is ended by one request with its cookies, without following a redirect")
    func gateway() async throws {
        let rig = LoginRig([
            ScriptedStep(.get, "https://www.example.com/pkmslogout", .success(SideResponse(status: 302))) {
                $0.fields[.cookie] == "PD-S-SESSION-ID=abc" && $0.body == nil
            }
        ])
        let logout = GatewayLogout(name: "portal", url: Self.url)
        #expect(await logOut(logout, of: try cookies("PD-S-SESSION-ID=abc; Path=/"), in: rig) == nil)
        #expect(rig.requests.missing.isEmpty && rig.steps == ["logout: 302"])
    }

    @Test("a logout is not sent without a matching cookie, nor to another host")
    func noCookie() async throws {
        let rig = LoginRig()
        let logout = GatewayLogout(name: "portal", url: Self.url)
        #expect(await logOut(logout, of: Session(), in: rig) == nil)
        #expect(await logOut(logout, of: try cookies("a=b; Path=/app"), in: rig) == nil)
    }

    @Test("a logout takes the token that it needs from a page of the session, and from its cookies")
    func token() async throws {
        let rig = LoginRig([
            ScriptedStep(
                .get, "https://www.example.com/home",
                .success(
                    SideResponse(
                        status: 200, fields: [.contentType: "text/html"],
                        body: Array("<a href='/logout?token=t1'>Log out</a>".utf8)))
            ) { $0.fields[.cookie] == "sid=abc; csrf=c1" },
            ScriptedStep(.post, "https://www.example.com/pkmslogout", .success(SideResponse(status: 302))) {
                $0.body?.revealText() == "token=t1" && $0.fields[.cookie] == "sid=abc; csrf=c1"
                    && $0.fields[.ifMatch] == "c1" && $0.fields[.referer] == "https://www.example.com/home"
            },
        ])
        var jar = CookieJar()
        for line in ["sid=abc; Path=/", "csrf=c1; Path=/"] { jar.store(line, from: Self.url, now: LoginRig.now) }
        let logout = GatewayLogout(
            name: "portal", url: Self.url, method: .post, page: WebURL("https://www.example.com/home"),
            parameters: [NamedTemplate(name: "token", value: try TextTemplate(#"{page:/logout\?token=(\w+)/}"#))],
            headers: [InjectedTemplate(name: .ifMatch, value: try TextTemplate("{cookie:csrf}"))])
        #expect(await logOut(logout, of: Session(cookies: SessionCookies(jar)), in: rig) == nil)
        #expect(rig.requests.missing.isEmpty)
    }

    @Test("a logout that the server does not confirm is a failure unrelated to the credential", arguments: [404, 500])
    func refused(_ status: Int) async throws {
        let rig = LoginRig([
            ScriptedStep(.post, "https://www.example.com/pkmslogout", .success(SideResponse(status: status)))
        ])
        let logout = GatewayLogout(name: "portal", url: Self.url, method: .post)
        let failure = await logOut(logout, of: try cookies("a=b; Path=/"), in: rig)
        #expect(failure?.code == .failed && failure?.detail.contains("\(status)") == true)
    }

    private func revocation(_ change: (inout TokenConfiguration) throws -> Void = { _ in }) throws -> TokenRevocation {
        TokenRevocation(
            url: try #require(WebURL("https://id.example.com/revoke")),
            try TokenScript.configuration(.clientCredentials, change),
            key: TokenScript.key, keys: ScriptedKeys())
    }

    @Test("a token at the revocation endpoint, by a client that says who it is (RFC 7009 section 2.1)")
    func revocation() async throws {
        let rig = LoginRig.tokens([
            ScriptedStep(.post, "https://id.example.com/revoke", .success(SideResponse(status: 200))) { request in
                request.form("token") == "token-1" && request.form("token_type_hint") == "access_token"
                    && request.fields[.authorization]?.hasPrefix("Basic ") == true && request.form("scope") == nil
            }
        ])
        let session = Session(fields: [InjectedField(name: .authorization, value: Secret("Bearer token-1"))])
        #expect(await logOut(try revocation(), of: session, in: rig) == nil)
        #expect(rig.requests.missing.isEmpty)
    }

    @Test("a logout sends only its own token, and reports a refusal")
    func revocationRefused() async throws {
        let session = Session(fields: [InjectedField(name: .authorization, value: Secret("Basic dTpw"))])
        #expect(await logOut(try revocation(), of: session, in: LoginRig.tokens([])) == nil)
        let rig = LoginRig.tokens([
            ScriptedStep(.post, "https://id.example.com/revoke", .success(SideResponse(status: 503)))
        ])
        let token = Session(fields: [InjectedField(name: .authorization, value: Secret("Bearer token-1"))])
        #expect(await logOut(try revocation(), of: token, in: rig)?.code == .failed)
    }
}
