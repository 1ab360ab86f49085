// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Testing

@Suite("Challenges at paths that servers read differently")
struct CredentialReadingTests {
    /// An upstream whose key stands below `/app/admin/` only.
    private func proxy(before upstream: AnsweringUpstream) throws -> TestProxy {
        let name = try #require(HTTPField.Name("X-Api-Key"))
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            Session(fields: [InjectedField(name: name, value: Secret("s3cret"))])
        }
        var logins = Authenticators()
        logins.add(login, at: try LocationPattern("127.0.0.1:\(upstream.port)/app/admin/*"))
        let origin = Origin(scheme: .http, host: "127.0.0.1", port: upstream.port)
        return try TestProxy(UpstreamPlan(name: "bank", base: WebURL(origin: origin, path: "/app/"), logins: logins))
    }

    @Test(
        "a path that only some servers read as one of the challenge's is refused, and nothing goes upstream",
        arguments: [
            "/admin/%2e%2e/uploads/x", "/admin/..%2fuploads/x", "/admin/..;/uploads/x", "/admin/..%252fuploads/x",
            "/uploads/../admin/x", "/uploads/%2e%2e/admin/x", "//admin/x", "/admin;v=1/x", "/admin%2fx",
            "/../app/admin/x",
            "/admin/../../x",
        ])
    func refused(path: String) throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
        let (head, body) = try proxy(before: upstream).fetch(get(path))
        #expect(head.hasPrefix("HTTP/1.1 400 ") && body.contains("Write it plainly"), "\(body)")
    }

    @Test(
        "a path gets the challenge's credential if all readings match it, and none if no reading does")
    func passed() throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
        let proxy = try proxy(before: upstream)
        for path in ["/admin/x", "/admin/a%2Fb", "/admin/a/../b", "/admin/a;v=1//b", "/admin/100%25"] {
            let body = try proxy.fetch(get(path)).body
            #expect(body.hasPrefix("GET /app\(path) ") && body.contains("X-Api-Key: s3cret"), "\(path)")
        }
        for path in ["/x", "/a%2Fb", "/a/../b", "/%61dministrator", "/.well-known/a"] {
            let body = try proxy.fetch(get(path)).body
            #expect(body.hasPrefix("GET /app\(path) ") && !body.contains("s3cret"), "\(path)")
        }
    }
}
