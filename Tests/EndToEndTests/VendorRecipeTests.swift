// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("The recipes of docs/vendors.md, at servers made from the vendors' documentation")
struct VendorRecipeTests {
    /// A recipe: its heading, its configuration, and the fields that its commands store.
    struct Recipe: Sendable, CustomTestStringConvertible {
        let title: String
        let configuration: String
        let fields: [String]

        var testDescription: String { title }
        /// The name of its upstream, challenge and credential.
        var name: String { word(after: "  - name: ") }
        private func word(after mark: String) -> String {
            guard let start = configuration.firstRange(of: mark)?.upperBound else { return "" }
            return String(configuration[start...].prefix { !$0.isWhitespace })
        }

        /// Returns the configuration with all servers at a port of this machine, each below a path that begins with its host.
        func text(port: UInt16, server: UInt16) -> String {
            var text = configuration.replacing("127.0.0.1:8080", with: "127.0.0.1:\(port)")
            for mark in ["url: ", "url: \"", "\(name): \""] {
                text = text.replacing("\(mark)https://", with: "\(mark)http://127.0.0.1:\(server)/")
            }
            let lines = text.split(separator: "\n").filter { !$0.hasPrefix("credentials:") }
            return (lines + ["credentials: { sources: [env] }"]).joined(separator: "\n") + "\n"
        }
    }

    private static let recipes: [Recipe] = {
        let path = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/docs/vendors.md"
        let page = String(decoding: readFile(path), as: UTF8.self)
        return page.split(separator: "\n## ").dropFirst().map { section in
            let parts = section.split(separator: "```yaml\n").last?.split(separator: "\n```") ?? []
            let commands = section.split(separator: "\n").filter {
                $0.hasPrefix("    sudo countersign keyring set ")
            }
            return Recipe(
                title: String(section.prefix { $0 != "\n" }), configuration: String(parts.first ?? ""),
                fields: commands.compactMap { $0.split(separator: " ").last.map(String.init) })
        }
    }()

    private func run(_ recipe: Recipe, changing change: (String) -> String = { $0 }, _ more: [String: String] = [:])
        async throws -> (Curl, FakeServer)
    {
        var found: (Curl, FakeServer)?
        try await withFake(FakeKind(script: "vendors", challenge: "gateway: form")) { bank, fake in
            await bank.stopDaemon()
            bank.configure {
                $0.whole = change(recipe.text(port: bank.port, server: fake.port))
                for field in recipe.fields {
                    let variable = "COUNTERSIGN_\(recipe.name)__\(field)".uppercased().replacing("-", with: "_")
                    $0.environment[variable] = more[field] ?? "typed-\(field)"
                }
            }
            try await bank.startDaemon()
            found = (try await bank.curl("/things/1"), fake)
        }
        return try #require(found)
    }

    @Test("there is one for each name that people look for")
    func all() {
        let titles = Self.recipes.map(\.title).joined(separator: "\n").lowercased()
        for name in [
            "entra", "graph", "google", "github", "gitlab", "atlassian", "salesforce", "okta", "auth0", "keycloak",
            "elasticsearch", "azure devops", "spring", "uaa", "jenkins", "nexus", "artifactory", "grafana",
            "pingfederate",
        ] {
            #expect(titles.contains(name), "\(name)")
        }
    }

    @Test("a caller without a credential is served", arguments: recipes)
    func works(_ recipe: Recipe) async throws {
        let (answer, fake) = try await run(recipe, ["private-key": signingKey])
        #expect(answer.status == 200 && answer.json?["principal"]?.string == "app", "\(answer.summary)")
        #expect(fake.lines("token").count <= 1, "\(fake.lines("token"))")
    }

    @Test("an error of Entra is told with its code, and is no rejection")
    func entra() async throws {
        let recipe = try #require(Self.recipes.first { $0.title.contains("Entra") })
        let (refused, _) = try await run(
            recipe,
            changing: {
                $0.replacing("client-auth: body", with: "client-auth: body\n      parameters: { resource: \"x\" }")
            })
        #expect(refused.code == "login-failed" && refused.detail.contains("AADSTS901002"), "\(refused.summary)")
    }

    /// A key for signatures of a client, made for this test.
    private let signingKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7EKmkvHMtwsRcpVT
        nMowiMoewnOX3zxhxSvlu/VyG9GhRANCAAQqy5xJd7fERCWxUOWDKzwDhOxMPTRe
        I0hyjgZIhG6j2KjpXIriBZru2F2Mgqt5dHkFKexmy/cwAX8NvBK+Tstt
        -----END PRIVATE KEY-----
        """
}
