// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("A session at a login page is confirmed without its credential")
struct GatewayConfirmationTests {
    private func session() throws -> Session {
        var jar = CookieJar()
        jar.store("sid=1; Path=/", from: try #require(WebURL(Portal.address)), now: World.now)
        return Session(cookies: SessionCookies(jar))
    }

    private func confirm(
        _ world: World, proof: String? = nil, _ session: Session? = nil
    ) async throws -> SessionConfirmation {
        let confirmation = try await Portal.login(proof: proof).confirm(
            session ?? self.session(), world.conversation)
        #expect(world.requests.missing.isEmpty && world.credentials.count == 0)
        return confirmation
    }

    @Test("at `prove-at`, by one request: only the login page and 401 are its end, trouble is unknown")
    func proveAt() async throws {
        let proof = "\(Portal.origin)/whoami"
        for (status, body, expected) in [
            (200, "<p>ann</p>", SessionConfirmation.stillGood), (403, "", .stillGood), (404, "", .stillGood),
            (200, Portal.form, .over), (401, "", .over), (500, "", .unknown), (429, "", .unknown),
        ] {
            let world = Portal.world([Portal.get("/whoami", status, body, sends: "sid=1")])
            #expect(try await confirm(world, proof: proof) == expected, "\(status)")
        }
        let lost = Portal.get("/whoami", sends: "sid=1").replying(.failure(SideRequestError(.timedOut, reason: "late")))
        #expect(try await confirm(Portal.world([lost]), proof: proof) == .unknown)
    }

    @Test("at the upstream's address, with and without the session: an address that anybody may see tells nothing")
    func base() async throws {
        let inside = Portal.get(sends: "sid=1")
        #expect(try await confirm(Portal.world([inside, Portal.get("/app/home", 200, Portal.form)])) == .stillGood)
        #expect(try await confirm(Portal.world([inside, Portal.get()])) == .over)
        let out = Portal.get("/app/home", 200, Portal.form, sends: "sid=1")
        #expect(try await confirm(Portal.world([out])) == .over)
        let trouble = Portal.get("/app/home", 503, "", sends: "sid=1")
        #expect(try await confirm(Portal.world([trouble, Portal.get("/app/home", 200, Portal.form)])) == .unknown)
        #expect(try await confirm(Portal.world([trouble, Portal.get("/app/home", 503, "")])) == .over)
    }

    @Test("by redirects, and takes the cookies that renew the session")
    func renewed() async throws {
        let held = try session()
        let world = Portal.world([
            Portal.get("/app/home", 302, set: ["sid=2; Path=/"], to: "/app/start", sends: "sid=1"),
            Portal.get("/app/start", sends: "sid=2"), Portal.get("/app/home", 302, to: "/login"),
            Portal.get("/login", 200, Portal.form),
        ])
        #expect(try await confirm(world, held) == .stillGood)
        #expect(try world.cookies(of: held) == "sid=2")
    }
}
