// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Confirmation of a gateway's session")
struct GatewayConfirmationTests {
    private func session() throws -> Session {
        var jar = CookieJar()
        jar.store("sid=1; Path=/", from: try #require(WebURL(Portal.address)), now: LoginRig.now)
        return Session(cookies: SessionCookies(jar))
    }

    private func confirm(
        _ rig: LoginRig, proof: String? = nil, _ session: Session? = nil
    ) async throws -> SessionConfirmation {
        let confirmation = try await Portal.login(proof: proof).confirm(
            session ?? self.session(), rig.conversation)
        #expect(rig.requests.missing.isEmpty && rig.credentials.count == 0)
        return confirmation
    }

    @Test("a gateway's session is confirmed by one request to `prove-at`: only the login page and 401 end it")
    func proveAt() async throws {
        let proof = "\(Portal.origin)/whoami"
        for (status, body, expected) in [
            (200, "<p>ann</p>", SessionConfirmation.stillGood), (403, "", .stillGood), (404, "", .stillGood),
            (200, Portal.form, .over), (401, "", .over), (500, "", .unknown), (429, "", .unknown),
            (408, "", .unknown),
        ] {
            let rig = Portal.rig([Portal.get("/whoami", status, body, sends: "sid=1")])
            #expect(try await confirm(rig, proof: proof) == expected, "\(status)")
        }
        let lost = Portal.get("/whoami", sends: "sid=1").replying(.failure(SideRequestError(.timedOut, reason: "late")))
        #expect(try await confirm(Portal.rig([lost]), proof: proof) == .unknown)
    }

    @Test(
        "a gateway's session is confirmed at the upstream's address with and without it: a public address proves nothing"
    )
    func base() async throws {
        let inside = Portal.get(sends: "sid=1")
        #expect(try await confirm(Portal.rig([inside, Portal.get("/app/home", 200, Portal.form)])) == .stillGood)
        #expect(try await confirm(Portal.rig([inside, Portal.get()])) == .over)
        let out = Portal.get("/app/home", 200, Portal.form, sends: "sid=1")
        #expect(try await confirm(Portal.rig([out])) == .over)
        let trouble = Portal.get("/app/home", 503, "", sends: "sid=1")
        #expect(try await confirm(Portal.rig([trouble, Portal.get("/app/home", 200, Portal.form)])) == .unknown)
        #expect(try await confirm(Portal.rig([trouble, Portal.get("/app/home", 503, "")])) == .over)
    }

    @Test("a confirmation follows redirects and stores cookies that renew the session")
    func renewed() async throws {
        let held = try session()
        let rig = Portal.rig([
            Portal.get("/app/home", 302, set: ["sid=2; Path=/"], to: "/app/start", sends: "sid=1"),
            Portal.get("/app/start", sends: "sid=2"), Portal.get("/app/home", 302, to: "/login"),
            Portal.get("/login", 200, Portal.form),
        ])
        #expect(try await confirm(rig, held) == .stillGood)
        #expect(try rig.cookies(of: held) == "sid=2")
    }
}
