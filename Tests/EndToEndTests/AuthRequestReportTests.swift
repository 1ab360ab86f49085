// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("What is told of an auth-request listener")
struct AuthRequestReportTests {
    @Test("the access log has the request in question, and not the auth request; denials with their code")
    func accessLog() async throws {
        try await withNodes(.nginx, changing: { $0 + "access-log: { format: json, to: \"${FOLDER}/access.log\" }\n" }) {
            bank, proxy in
            let answer = try await proxy.curl("/oauth/api/echo?s3cr3t", "--data", "some body")
            #expect(answer.status == 200, "\(answer.summary)\(proxy.log)")
            let denied = try await Curl.run(
                ["-H", "Host: evil.example", "http://127.0.0.1:\(proxy.port)/oauth/api/echo"], in: bank.folder)
            #expect(denied.status == 403 && denied.field("countersign-code") == "host-not-allowed", "\(denied.summary)")
            func records() -> [JSON] {
                bank.folder.text(of: "access.log").split(separator: "\n").compactMap { JSON(parsing: Array($0.utf8)) }
            }
            #expect(await eventually { records().count == 2 })
            let (passed, refused) = (try #require(records().first), try #require(records().last))
            #expect(passed["method"] == "POST" && passed["path"] == "/oauth/api/echo" && passed["status"] == 200)
            #expect(passed["host"] == "bank.example.com" && passed["upstream"] == "bank")
            #expect(refused["status"] == 403 && refused["code"] == "host-not-allowed")
        }
    }

    @Test("explain says which listener is one")
    func explain() async throws {
        let folder = try Folder()
        let arguments = [Binary.path, "explain", "--config", Repository.path(of: "config/auth-requests.yaml")]
        for (port, answersAuthRequests) in [(8081, true), (8080, false)] {
            let url = "http://127.0.0.1:\(port)/a"
            let text = try await Command.run(arguments + [url], in: folder)
            #expect(
                text.exit == 0 && text.output.contains("an auth-request listener") == answersAuthRequests, "\(text)")
            let json = try await Command.run(arguments + [url, "--json"], in: folder)
            #expect(
                JSON(parsing: Array(json.output.utf8))?["auth_requests"] == JSON.bool(answersAuthRequests), "\(json)")
        }
    }
}
