// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import FakeServers
import HTTPTypes
import LoginExamples
import Testing

@Suite("The examples of the client, at faithful fakes")
struct ClientExampleTests {
    @Test("WebSEAL's form is filled in, and what is behind it is served")
    func webSEAL() async throws {
        try await withFake(.webSEAL) { _, fake in
            let client = try ChallengeClient()
            try client.registerChallengeHandler(WebSEALHandler(user: "ann", password: "demo"))
            for _ in 0..<3 {
                let response = try await client.send(to: "http://127.0.0.1:\(fake.port)/app/")
                #expect(try await response.text(upTo: 10_000).contains("\"principal\""))
            }
            #expect(fake.logins == ["ann ok"])
            await client.shutdown()
        }
    }

    @Test("WebSEAL's word on a wrong password is the end of it, after one attempt")
    func wrongPassword() async throws {
        try await withFake(.webSEAL) { _, fake in
            let client = try ChallengeClient()
            try client.registerChallengeHandler(WebSEALHandler(user: "ann", password: "wrong"))
            for _ in 0..<2 {
                let error = await #expect(throws: ClientError.self) {
                    try await client.send(to: "http://127.0.0.1:\(fake.port)/app/")
                }
                #expect(error?.loginFailure != nil)
            }
            #expect(fake.logins.count == 1)
            await client.shutdown()
        }
    }

    @Test("over TLS a server proves itself, by the authorities that the configuration names")
    func overTLS() async throws {
        try await withFake(.webSEALBehindTLS) { bank, fake in
            let address = "https://localhost:\(fake.port)/app/"
            for isTrusted in [true, false] {
                var configuration = ClientConfiguration()
                if isTrusted { configuration.connections.authorities = bank.folder.bytes(of: "ca.pem") }
                let client = try ChallengeClient(configuration)
                try client.registerChallengeHandler(WebSEALHandler(user: "ann", password: "demo"))
                if isTrusted {
                    let text = try await client.send(to: address).text(upTo: 10_000)
                    #expect(text.contains("\"principal\""))
                } else {
                    let error = await #expect(throws: ClientError.self) { try await client.send(to: address) }
                    #expect(error?.kind == .upstreamTLS)
                }
                await client.shutdown()
            }
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("containers of Java EE take the form of j_security_check", arguments: [FakeKind.jetty, .undertow, .liberty])
    func javaEE(_ kind: FakeKind) async throws {
        try await withFake(kind) { _, fake in
            let client = try ChallengeClient()
            try client.registerChallengeHandler(FormHandler { again in again ? nil : ("ann", "demo") })
            let response = try await client.send(to: "http://127.0.0.1:\(fake.port)/app/")
            #expect(try await response.text(upTo: 10_000).contains("\"principal\""))
            await client.shutdown()
        }
    }
}
