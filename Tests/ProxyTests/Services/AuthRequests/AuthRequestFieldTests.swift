// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Testing

@Suite("Fields that an auth-request listener has another proxy add")
struct AuthRequestFieldTests {
    private func cookies(_ port: UInt16) -> Authenticator {
        .scripted(port: port, trigger: .ahead, isAhead: true) { _, _, conversation in
            var jar = CookieJar()
            if let url = WebURL("http://127.0.0.1:\(port)/deep/login") {
                _ = jar.store("sid=one; Path=/deep", from: url, now: conversation.now())
            }
            return Session(cookies: SessionCookies(jar))
        }
    }

    @Test("session cookies share one field with the caller's, whose cookies of the same names are removed")
    func merged() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [cookies(port)]) }
        #expect(try rig.ask("/deep/a").contains("\r\nCookie: sid=one\r\n"))
        let head = try rig.ask("/deep/a", "Cookie: a=1; sid=evil\r\nCookie: b=2\r\n")
        #expect(head.contains("\r\nCookie: sid=one; a=1; b=2\r\n"))
        #expect(head.contains("\r\nVary: Cookie, Origin, Sec-Fetch-Mode, Sec-Fetch-Site\r\n"))
    }

    @Test("cookies of a caller that Connection names stay here")
    func nominated() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [cookies(port)]) }
        let head = try rig.ask("/deep/a", "Connection: cookie\r\nCookie: a=1\r\n")
        #expect(head.contains("\r\nCookie: sid=one\r\n"))
    }

    @Test("a caller's cookie with a session cookie's name is kept where the session's own does not apply")
    func elsewhere() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [cookies(port)]) }
        #expect(try rig.ask("/shop", "Cookie: sid=mine\r\n").contains("\r\nCookie: sid=mine\r\n"))
    }

    @Test("if none of a caller's cookies is left, the other proxy has to remove the field")
    func removed() throws {
        let rig = try AuthRequestRig { port in .bank(port: port, logins: [cookies(port)]) }
        let head = try rig.ask("/elsewhere", "Cookie: ;\r\n")
        #expect(!head.contains("\r\nCookie:"))
        #expect(head.contains("\r\nCountersign-Keep: Authorization\r\n"))
        #expect(head.contains("\r\nX-Envoy-Auth-Headers-To-Remove: cookie\r\n"))
        #expect(!(try rig.ask("/elsewhere")).contains("To-Remove"))
    }

    @Test("an auth request's answer does not vary if browsers may call and there are no cookies")
    func independent() throws {
        let rig = try AuthRequestRig(
            { port in .bank(port: port, logins: [.scripted(port: port) { _, _, _ in .bearer("t") }]) },
            browsers: .allow)
        let head = try rig.ask("/a", "Sec-Fetch-Site: cross-site\r\n")
        #expect(head.hasPrefix("HTTP/1.1 200 ") && head.contains("max-age=") && !head.contains("Vary"))
        #expect(head.contains("\r\nCountersign-Keep: Cookie\r\n"))
    }

    /// Signer of method and target, which cannot sign a body.
    private final class Signer: RequestSigner {
        let names: [HTTPField.Name] = [.authorization]

        func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
            if case .unread = request.body {
                throw LoginFailure(.failed, challenge: "bank", detail: "The body is to be signed, too.")
            }
            let value = Secret("Signed \(request.method) \(request.target)")
            return SignedFields([InjectedField(name: .authorization, value: value)])
        }

        func learn(status: Int, fields: HTTPFields, target: String) {}
    }

    @Test("a field made for one request is for it alone, and one that needs the body is a denial")
    func signed() throws {
        let rig = try AuthRequestRig { port in
            let login = Authenticator.scripted(port: port) { _, _, _ in
                var session = Session()
                session.signer = Signer()
                return session
            }
            return .bank(port: port, path: "/base/", logins: [login])
        }
        let head = try rig.ask("/a?b", method: "DELETE")
        #expect(head.contains("\r\nAuthorization: Signed DELETE /base/a?b\r\n"))
        #expect(head.contains("\r\nCache-Control: no-store\r\n"))
        let refused = try rig.ask("/a", method: "POST")
        #expect(refused.hasPrefix("HTTP/1.1 403 ") && refused.contains("The body is to be signed, too."))
    }

    @Test("a session that is bound to connections is refused for auth requests, with a remedy")
    func connections() throws {
        let rig = try AuthRequestRig { port in
            let login = Authenticator.scripted(port: port) { _, _, _ in
                var session = Session()
                session.connection = ConnectionCredential(username: Secret("ann"), password: Secret("pw"))
                return session
            }
            return .bank(port: port, logins: [login])
        }
        let head = try rig.ask()
        #expect(head.hasPrefix("HTTP/1.1 403 ") && head.contains("NTLM authenticates a connection"))
        #expect(!head.contains("pw"))
    }
}
