// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Tokens against forged requests, with Django")
struct ForgeryTokenTests {
    private static let injection = """
        inject:
          X-CSRFToken: { value: "{cookie:csrftoken}", on: [POST, PUT, PATCH, DELETE] }
        """

    private func kind(_ more: String = injection) throws -> FakeKind {
        var kind = try Application.django.kind()
        kind.challenge += "\n\(more)"
        return kind
    }

    private func write(_ bank: Bank) async throws -> Curl {
        try await bank.curl("/write/", "--data", "amount=1", "-H", "X-CSRFToken: forged")
    }

    @Test("a caller's write gets the token of the session's cookie, cold and 20 at once, and is carried out once each")
    func once() async throws {
        try await withFake(try kind()) { bank, fake in
            let answers = try await withThrowingTaskGroup(of: Curl.self) { group in
                for _ in 0..<20 { group.addTask { try await write(bank) } }
                return try await group.reduce(into: [Curl]()) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0.status == 200 && $0.text == "written by ann" }, "\(answers.map(\.status))")
            #expect(fake.logins.count == 1)
            #expect(fake.arrived == Array(repeating: "POST /write/ ann", count: 20))
        }
    }

    @Test("the token follows the cookie when the server renews it, and replaces a caller's own")
    func renewed() async throws {
        try await withFake(try kind()) { bank, fake in
            for _ in 0..<2 {
                let answer = try await write(bank)
                #expect(answer.text == "written by ann", "\(answer.summary)")
                try await bank.expect("/rotate/", status: 200)
            }
            #expect(fake.logins.count == 1)
        }
    }

    @Test("without it the same write is refused by the server, whose answer passes")
    func refused() async throws {
        try await withFake(try kind("")) { bank, fake in
            let answer = try await write(bank)
            #expect(answer.status == 403)
            #expect(fake.arrived.isEmpty)
        }
    }
}
