// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Logins at servers that compress every answer, whatever was asked for")
struct CompressedAnswerTests {
    @Test(
        "a login page and what follows it may come compressed",
        arguments: [FakeKind.undertow, .webSEALByRedirect], ["gzip", "deflate", "bomb"])
    func form(_ kind: FakeKind, coding: String) async throws {
        try await withFake(kind) { bank, fake in
            try await fake.direct("/-fake/compress?coding=\(coding)")
            let answer = try await bank.expect("/app/reports", status: 200)
            // The caller gets it as it came.
            #expect(answer.field("content-encoding") == (coding == "deflate" ? "deflate" : "gzip"))
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("a wrong password that a compressed answer tells is latched", arguments: ["gzip", "deflate"])
    func wrongPassword(coding: String) async throws {
        try await withFake(.token, password: "not-it") { bank, fake in
            try await fake.direct("/-fake/compress?coding=\(coding)")
            try await bank.expect("/api/accounts", code: "login-rejected")
            try await bank.expect("/api/accounts", code: "login-latched")
            #expect(fake.logins == ["ann wrong"])
        }
    }

    @Test("a token in a compressed answer is taken out of it", arguments: ["gzip", "deflate"])
    func token(coding: String) async throws {
        try await withFake(.token) { bank, fake in
            try await fake.direct("/-fake/compress?coding=\(coding)")
            try await bank.expect("/api/accounts", status: 200)
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("an answer of 8 MiB in 8 KiB is an unknown outcome, and latches nothing")
    func bomb() async throws {
        try await withFake(.token) { bank, fake in
            try await fake.direct("/-fake/compress?coding=bomb")
            try await bank.expect("/api/accounts", code: "login-failed")
            let status = try await bank.admin("/status").text
            #expect(!status.contains("latched"), "\(status)")
        }
    }
}
