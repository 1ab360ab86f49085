// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

@Suite("A credential that is changed while its session serves")
struct RotationTests {
    /// Replaces a file as editors and `kubelet` do.
    private static func replace(_ name: String, in folder: Folder, with text: String) {
        folder.write(text, to: ".new")
        #expect(unsafe rename(folder.path(of: ".new"), folder.path(of: name)) == 0)
    }

    private static func configuration(_ credentials: Folder, _ challenge: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.sources = ["env", "systemd"]
        configuration.challenges = [challenge]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        return configuration
    }

    @Test("is used before the server refuses the old one, and rewriting the same value does nothing")
    func basic() async throws {
        let credentials = try Folder()
        credentials.write("ann", to: "ann.username")
        credentials.write("first", to: "ann.password")
        let configuration = Self.configuration(
            credentials,
            """
            name: ann
            upstream: server
            scheme: basic
            credential: ann
            """)
        try await withBank(configuration) { bank in
            // "ann:first", "ann:second", "ann:third"
            let values = ["Basic YW5uOmZpcnN0", "Basic YW5uOnNlY29uZA==", "Basic YW5uOnRoaXJk"]
            let seen = Notes()
            bank.upstream.override { request in
                guard request.path.hasPrefix("/basic/") else { return nil }
                let value = request.field("authorization") ?? ""
                seen.add(value)
                guard values.contains(value) else {
                    return .text(401, "who?\n", fields: [("WWW-Authenticate", #"Basic realm="Demo""#)])
                }
                return .text(200, "welcome\n")
            }
            try await bank.expect("/basic/", status: 200)
            #expect(seen.all == ["", values[0]])

            for (text, value) in [("second", values[1]), ("third", values[2])] {
                Self.replace("ann.password", in: credentials, with: text)
                let isUsed = await eventually {
                    _ = try? await bank.expect("/basic/", status: 200)
                    return seen.all.last == value
                }
                #expect(isUsed)
                // The same once more, by another file.
                Self.replace("ann.password", in: credentials, with: text)
            }
            // No password was refused on the way: a new one is first tried with a challenge. And no more changes were
            // reported than there were.
            #expect(seen.all.allSatisfy { $0 == "" || values.contains($0) })
            #expect(seen.all.count { $0 == "" } <= 3)
            #expect(try bank.daemon.log.components("credential changed") == 2)
            #expect(try bank.daemon.log.components(#""login succeeded""#) == 3)
        }
    }

    @Test("to one that the server rejects is tried once, while the old session goes on")
    func rejected() async throws {
        let credentials = try Folder()
        credentials.write("test", to: "reports.client-id")
        credentials.write("test", to: "reports.client-secret")
        var configuration = Self.configuration(
            credentials,
            """
            name: reports
            upstream: bank
            scheme: bearer
            credential: reports
            token: { grant: mobilefirst, scope: accessRestricted }
            """)
        configuration.mobileFirst = []
        try await withBank(configuration) { bank in
            func tokenRequests() -> Int { bank.record.count("POST", "/mfp/api/az/v1/token") }
            try await bank.expect("/balance", status: 200)
            #expect(tokenRequests() == 1)
            Self.replace("reports.client-secret", in: credentials, with: "wrong")
            #expect(await eventually { tokenRequests() == 2 })
            #expect(try await bank.daemon.waitForLog("login-rejected"))
            for _ in 0..<3 { try await bank.expect("/balance", status: 200) }
            // And the right one again.
            Self.replace("reports.client-secret", in: credentials, with: "test")
            #expect(try await bank.daemon.waitForLog("credential changed", times: 2))
            #expect(await eventually { tokenRequests() == 3 })
            try await bank.expect("/balance", status: 200)
        }
    }
}
