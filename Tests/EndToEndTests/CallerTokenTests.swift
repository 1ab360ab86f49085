// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

/// Callers that the kernel cannot name, such as those in containers.
@Suite("Callers by token")
struct CallerTokenTests {
    private static let (first, second, backup) = (
        "first-token-of-ci-0001", "second-token-of-ci-002", "token-of-backup-00001"
    )

    private static func replace(_ name: String, in folder: Folder, with text: String) {
        folder.write(text, to: ".new")
        #expect(unsafe rename(folder.path(of: ".new"), folder.path(of: name)) == 0)
    }

    /// Runs a scenario with a server that reports its requests, and credentials of their own for two callers.
    private func withServer(
        _ body: (_ bank: Bank, _ credentials: Folder, _ seen: Notes) async throws -> Void
    ) async throws {
        let credentials = try Folder()
        credentials.write(Self.first, to: "ci.token")
        credentials.write(Self.backup + "\n", to: "backup.token")
        for name in ["ann", "bob"] {
            credentials.write(name, to: "\(name).username")
            credentials.write("right", to: "\(name).password")
        }
        var configuration = BankConfiguration()
        configuration.sources = ["systemd"]
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            upstream: server
            callers: { credentials: [ci, backup] }
            """
        configuration.challenges = [
            """
            name: site
            upstream: server
            scheme: basic
            credential: { by-caller: { ci: ann, "*": bob } }
            """
        ]
        configuration.more = ["access-log: { format: json, to: \"${FOLDER}/access.log\" }"]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        try await withBank(configuration, startsDaemon: false) { bank in
            let seen = Notes()
            bank.upstream.override { request in
                let value = request.field("authorization") ?? ""
                seen.add(value)
                // "ann:right", "bob:right"
                let names = ["Basic YW5uOnJpZ2h0": "ann", "Basic Ym9iOnJpZ2h0": "bob"]
                guard let name = names[value] else {
                    return .text(401, "who?\n", fields: [("WWW-Authenticate", #"Basic realm="Demo""#)])
                }
                return .text(200, name)
            }
            try await bank.startDaemon()
            try await body(bank, credentials, seen)
        }
    }

    private func bearer(_ token: String) -> String { "Authorization: Bearer \(token)" }

    @Test("no token and a wrong one are 401, a right one is forwarded without it, with the caller's own credential")
    func admitted() async throws {
        try await withServer { bank, _, seen in
            let missing = try await bank.expect("/", status: 401, code: "caller-not-known")
            #expect(missing.field("www-authenticate") == "Bearer")
            try await bank.expect("/", "-H", bearer("wrong-token-of-somebody"), status: 401, code: "caller-not-known")
            #expect(seen.all.isEmpty)
            #expect(try await bank.expect("/", "-H", bearer(Self.first), status: 200).text == "ann")
            #expect(try await bank.expect("/", "-H", bearer(Self.backup), status: 200).text == "bob")
            #expect(seen.all.allSatisfy { !$0.contains("Bearer") })
            // The audit record and the access log name the caller; neither contains a token.
            let log = try bank.daemon.log
            #expect(log.contains(#""caller_name":"ci""#) && log.contains(#""caller_name":"backup""#))
            #expect(
                await eventually { bank.folder.text(of: "access.log").split(separator: "\n").count >= 4 })
            let lines = bank.folder.text(of: "access.log").split(separator: "\n").compactMap {
                JSON(parsing: Array($0.utf8))
            }
            #expect(lines.map { $0["caller_name"] } == [nil, nil, "ci", "backup"])
            #expect(lines.map { $0["status"] } == [401, 401, 200, 200])
            for text in [log, bank.folder.text(of: "access.log")] {
                for token in [Self.first, Self.backup, "wrong-token-of-somebody"] { #expect(!text.contains(token)) }
            }
            let explained = try await bank.countersign("explain", bank.url("/"), "--caller", "ci")
            #expect(explained.output.contains("callers   by token in Authorization: ci, backup"), "\(explained)")
            #expect(explained.output.contains("site: basic, credential ann"), "\(explained)")
            let others = try await bank.countersign("explain", bank.url("/"))
            #expect(others.output.contains("credential by caller: ci ann, others bob"), "\(others)")
            let doctor = try await bank.countersign("doctor")
            #expect(doctor.output.contains("only callers with a token in Authorization: ci, backup"), "\(doctor)")
        }
    }

    @Test("a token that is changed while the daemon runs counts from then on, and the old one no more")
    func rotated() async throws {
        try await withServer { bank, credentials, _ in
            try await bank.expect("/", "-H", bearer(Self.first), status: 200)
            Self.replace("ci.token", in: credentials, with: Self.second)
            let isNew = await eventually {
                (try? await bank.curl("/", "-H", bearer(Self.second)))?.status == 200
            }
            #expect(isNew)
            try await bank.expect("/", "-H", bearer(Self.first), status: 401, code: "caller-not-known")
            try await bank.expect("/", "-H", bearer(Self.backup), status: 200)
        }
    }

    @Test("a token that is gone or too short lets nobody in, and log and readiness say why")
    func missing() async throws {
        try await withServer { bank, credentials, _ in
            try await bank.expect("/", "-H", bearer(Self.first), status: 200)
            #expect(try await bank.admin("/readyz").status == 200)
            Self.replace("ci.token", in: credentials, with: "short")
            let isRefused = await eventually {
                (try? await bank.curl("/", "-H", bearer(Self.first)))?.code == "no-credential"
            }
            #expect(isRefused)
            try await bank.expect("/", "-H", bearer("short"), status: 503, code: "no-credential")
            try await bank.expect("/", "-H", bearer(Self.backup), status: 200)
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 503 && ready.text.contains("the token of ci is not known"), "\(ready.summary)")
            #expect(try bank.daemon.log.contains("has 5 bytes; it needs 16 to 4096"))
            Self.replace("ci.token", in: credentials, with: Self.second)
            let isBack = await eventually {
                (try? await bank.curl("/", "-H", bearer(Self.second)))?.status == 200
            }
            #expect(isBack)
            #expect(try await bank.admin("/readyz").status == 200)
        }
    }
}
