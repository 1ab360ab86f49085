// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

/// Logins that establish no session.
enum LoginFailures {
    /// Returns the answer to each request, by its name in the list.
    static func answers() async throws -> [String: Curl] {
        async let schemes = challenges()
        async let kept = checks("attempts-kept") { $0.startingAttempts = ["PinCodeAttempts": 1] }
        async let locked = checks("account-locked") {
            $0.checks = [.failing("PinCodeAttempts", with: ["failure": "Account blocked"])]
        }
        async let exposed = keyring("keyring-exposed", passphrase: "right", mode: 0o644)
        async let wrong = keyring("keyring-passphrase", passphrase: "wrong", mode: 0o600)
        async let long = longBody()
        return try await [schemes, kept, locked, exposed, wrong, long].reduce(into: [:]) { $0.merge($1) { $1 } }
    }

    /// A challenge, at an upstream of its own and of its name.
    private struct Place {
        var name: String
        var path: String
        var challenge: String
        var upstream = ""
    }

    private static func places(tokenPort: UInt16) -> [Place] {
        let server = "http://127.0.0.1:${UPSTREAM_PORT}"
        let page = """
            gateway: none
            credential: wrong
            detect: { body-contains: please log in }
            success: { cookie: SESSION }
            """
        func login(_ name: String, timeout: String = "10s") -> String {
            "\(page)\nlogin: { page: /\(name)/, url: form, parameters: { p: \"{password}\" }, timeout: \(timeout) }"
        }
        return [
            Place(name: "wrong-password", path: "/basic/", challenge: "scheme: basic\ncredential: wrong"),
            Place(name: "latched", path: "/basic/", challenge: "scheme: basic\ncredential: wrong"),
            Place(name: "no-credential", path: "/basic/", challenge: "scheme: basic\ncredential: nobody"),
            Place(name: "missing-field", path: "/basic/", challenge: "scheme: basic\ncredential: half"),
            Place(name: "helper-fails", path: "/basic/", challenge: "scheme: basic\ncredential: failing"),
            Place(name: "helper-times-out", path: "/basic/", challenge: "scheme: basic\ncredential: slow"),
            Place(
                name: "token-endpoint-down", path: "/oauth/api/",
                challenge: """
                    scheme: bearer
                    credential: client
                    token: { url: "http://127.0.0.1:\(tokenPort)/token", grant: client-credentials }
                    """),
            Place(
                name: "invalid-client", path: "/oauth/api/",
                challenge: """
                    scheme: bearer
                    credential: client
                    token: { url: "\(server)/oauth/token", grant: client-credentials }
                    """),
            Place(name: "login-page-changed", path: "/login-page-changed/", challenge: login("login-page-changed")),
            Place(name: "login-no-evidence", path: "/login-no-evidence/", challenge: login("login-no-evidence")),
            Place(name: "login-unavailable", path: "/login-unavailable/", challenge: login("login-unavailable")),
            Place(name: "login-timeout", path: "/login-timeout/", challenge: login("login-timeout", timeout: "300ms")),
        ]
    }

    private static func challenges() async throws -> [String: Curl] {
        let folder = try Folder()
        let helper = folder.write(
            """
            #!/bin/sh
            read -r question
            case $question in
            *failing*) echo "s3cr3t place of the vault" >&2; exit 3;;
            *slow*) exec sleep 60;;
            *) echo '{"fields": null}';;
            esac

            """, to: "helper", mode: 0o700)
        let places = places(tokenPort: Ports.next())
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.sources = ["env", "exec: [\(helper)]"]
        configuration.upstreams = places.map {
            "\($0.name):\n  url: \"http://127.0.0.1:${UPSTREAM_PORT}\($0.path)\"\($0.upstream)"
        }
        configuration.challenges = places.map { "name: \($0.name)\nupstream: \($0.name)\n\($0.challenge)" }
        let routes = places.map { "  - { path: /\($0.name)/, upstream: \($0.name), strip-prefix: true }" }
        configuration.listeners = (["address: 127.0.0.1:${PROXY_PORT}", "routes:"] + routes).joined(separator: "\n")
        configuration.environment = [
            "COUNTERSIGN_WRONG__USERNAME": "ann", "COUNTERSIGN_WRONG__PASSWORD": "s3cr3t",
            "COUNTERSIGN_RIGHT__USERNAME": "ann", "COUNTERSIGN_RIGHT__PASSWORD": "demo",
            "COUNTERSIGN_HALF__USERNAME": "ann", "COUNTERSIGN_CLIENT__CLIENT_ID": "demo",
            "COUNTERSIGN_CLIENT__CLIENT_SECRET": "s3cr3t",
        ]
        var answers: [String: Curl] = [:]
        try await withBank(configuration) { bank in
            bank.upstream.override(page)
            _ = try await bank.curl("/latched/x")
            for place in places { answers[place.name] = try await bank.curl("/\(place.name)/x") }
        }
        return answers
    }

    /// Returns the pages of a server with logins of its own.
    private static func page(_ request: FakeRequest) -> FakeResponse? {
        guard let name = request.path.split(separator: "/").first, name.hasPrefix("login-") else { return nil }
        let form = "<form method=post action=/\(name)/><input name=p type=password></form>"
        switch (name, request.method, request.path.hasSuffix("/x")) {
        case ("login-page-changed", _, _): return .html(200, "<html>please log in, by <a href=/new>this</a></html>")
        case ("login-unavailable", _, false): return .html(503, "<html>Maintenance</html>")
        case ("login-no-evidence", _, _) where request.method == "POST" || request.cookie("SOME") != nil:
            return .html(200, "<html>welcome</html>", fields: [("Set-Cookie", "SOME=cookie")])
        case ("login-timeout", "POST", _):
            var response = FakeResponse(200)
            response.delivery.hangs = true
            return response
        default: return .html(200, "<html>please log in \(form)</html>")
        }
    }

    /// Sends a body longer than the part kept for resending, on a session that has ended.
    private static func longBody() async throws -> [String: Curl] {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.upstreams = [
            "portal:\n  url: \"http://127.0.0.1:${UPSTREAM_PORT}/\"\n  replay: { memory: 4KiB, disk: 0 }"
        ]
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: portal"
        configuration.challenges = ["name: portal\nupstream: portal\ngateway: j-security-check\ncredential: ann"]
        configuration.environment = ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": "demo"]
        var answers: [String: Curl] = [:]
        try await withBank(configuration) { bank in
            try await bank.expect("/form/x", status: 200)
            bank.upstream.form.dropSessions()
            let file = bank.folder.write(pattern(300_000), to: "body")
            answers["body-not-replayable"] = try await bank.curl("/form/x", "--data-binary", "@\(file)")
        }
        return answers
    }

    private static func checks(
        _ name: String, _ change: (inout MobileFirstRules) -> Void
    ) async throws -> [String: Curl] {
        var rules = FakeUpstream.rules
        change(&rules)
        var answers: [String: Curl] = [:]
        try await withBank(rules: rules) { answers[name] = try await $0.curl("/balance") }
        return answers
    }

    private static func keyring(_ name: String, passphrase: String, mode: mode_t) async throws -> [String: Curl] {
        var configuration = BankConfiguration()
        configuration.sources = ["keyring: ${FOLDER}/keyring"]
        configuration.environment = ["COUNTERSIGN_KEYRING_PASSPHRASE": "right"]
        var answers: [String: Curl] = [:]
        try await withBank(configuration, startsDaemon: false) { bank in
            for (arguments, input) in [(["init"], nil), (["set", "bank-pin", "pin"], Array("1234".utf8))] {
                _ = try await Command.run(
                    [Binary.path, "keyring"] + arguments + ["--config", bank.folder.path(of: "countersign.yaml")],
                    environment: bank.environment, input: input, in: bank.folder)
            }
            unsafe chmod(bank.folder.path(of: "keyring"), mode)
            bank.configure { $0.environment["COUNTERSIGN_KEYRING_PASSPHRASE"] = passphrase }
            try await bank.startDaemon()
            answers[name] = try await bank.curl("/balance")
        }
        return answers
    }
}
