// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("countersign explain --user")
struct ExplainUserTests {
    private func explain(_ path: String, user: String?, users: String = "") async throws -> (exit: Int32, JSON) {
        let folder = try Folder()
        folder.write(
            """
            listeners:
              - address: 127.0.0.1:8080
                upstream: common
                \(users)
                routes:
                  - { path: /pay/, users: ["4001"], upstream: pay }
            upstreams: { common: { url: "https://common.example/" }, pay: { url: "https://pay.example/" } }
            challenges:
              - name: corp
                upstream: common
                scheme: basic
                credential: { by-user: { "4001": ann, root: admin } }
            """, to: "c.yaml")
        let who = user.map { ["--user", $0] } ?? []
        let run = try await Command.run(
            [Binary.path, "explain", "--config", folder.path(of: "c.yaml"), "http://127.0.0.1:8080\(path)", "--json"]
                + who,
            in: folder)
        return (run.exit, try #require(JSON(parsing: Array(run.output.utf8)), "\(run)"))
    }

    private func credential(_ json: JSON) -> JSON? { handler(json)?["credential"] }

    private func handler(_ json: JSON) -> JSON? {
        if case .array(let handlers)? = json["handlers"] { handlers.first } else { nil }
    }

    @Test("takes the routes of that user")
    func routes() async throws {
        #expect(try await explain("/pay/x", user: "4001").1["upstream"]?.string == "pay")
        // The first route that matches decides: no other one, nor the listener's own upstream, takes who is refused.
        let refused = try await explain("/pay/x", user: "4002")
        #expect(refused.exit == 1 && refused.1["upstream"] == .null)
        #expect(
            refused.1["reason"]?.string
                == "routes[0] matches, but its `users` do not include this user (403, caller-not-allowed)")
        #expect(
            try await explain("/pay/x", user: nil).1["reason"]?.string
                == "routes[0] matches, but its `users` restrict who may use it: give --user (403, caller-not-allowed)")
        #expect(
            try await explain("/x/..;/pay/x", user: "4001").1["reason"]?.string?.contains("400, bad-request") == true)
    }

    @Test("names the credential of that user, by number and by name, and tells who has none")
    func credentials() async throws {
        #expect(credential(try await explain("/x", user: "4001").1)?.string == "ann")
        #expect(credential(try await explain("/x", user: "root").1)?.string == "admin")
        let nobody = try await explain("/x", user: "4002").1
        #expect(credential(nobody) == .null)
        #expect(handler(nobody)?["kind"]?.string?.contains("no credential for this caller") == true)
        // For nobody in particular it tells them all.
        #expect(handler(try await explain("/x", user: nil).1)?["by_user"]?["4001"]?.string == "ann")
    }

    @Test("tells whom the listener does not let in")
    func listener() async throws {
        let refused = try await explain("/x", user: "4002", users: "users: [\"4001\"]")
        #expect(refused.exit == 1)
        #expect(refused.1["reason"]?.string?.contains("403, caller-not-allowed") == true)
        #expect(try await explain("/x", user: "4001", users: "users: [\"4001\"]").exit == 0)
    }

    @Test("wants a user that there is")
    func unknown() async throws {
        let folder = try Folder()
        folder.write(
            "listeners: [{ address: 127.0.0.1:1, upstream: u }]\nupstreams: { u: { url: \"http://u/\" } }", to: "c")
        let run = try await Command.countersign(
            "explain", "--config", folder.path(of: "c"), "http://127.0.0.1:1/", "--user", "no-such-user", in: folder)
        #expect(run.exit == 64)
        #expect(run.errors.contains("there is no user no-such-user"))
    }
}
