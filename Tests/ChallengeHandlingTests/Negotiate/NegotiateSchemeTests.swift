// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import Testing

/// Gives out tickets that number their tokens, or fails.
private final class Office: TicketOffice {
    final class Numbered: Ticket {
        let lifetime: Int64 = 3_600
        private let count = Atomic<Int>(0)

        func token() throws(TicketError) -> [UInt8] {
            let number = count.wrappingAdd(1, ordering: .relaxed).newValue
            if number > 2 { throw TicketError(.unknown, reason: "the ticket has ended") }
            return Array("token \(number)".utf8)
        }
    }

    let requests = Mutex<[TicketRequest]>([])
    private let failure: TicketError?

    init(failing failure: TicketError? = nil) { self.failure = failure }

    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        requests.withLock { $0.append(request) }
        if let failure { throw failure }
        return Numbered()
    }

    var last: TicketRequest? { requests.withLock { $0.last } }
}

@Suite("Negotiate")
struct NegotiateSchemeTests {
    private func credential(_ fields: [String: String]) -> Credential {
        Credential(name: "robot", fields: fields.mapValues { Secret($0) })
    }

    @Test("each request carries a token of its own, until the ticket ends")
    func tokens() async throws {
        let session = try await NegotiateScheme(office: Office(), host: "www.example.com").session(nil, now: 1_000)
        #expect(session.expiresAt == 3_601_000)
        let signer = try #require(session.signer)
        #expect(signer.names == [.authorization])
        let first = try signer.sign(method: "GET", target: "/")
        let second = try signer.sign(method: "GET", target: "/")
        #expect(first.map { $0.value.revealText() } == ["Negotiate dG9rZW4gMQ=="])
        #expect(second.map { $0.value.revealText() } == ["Negotiate dG9rZW4gMg=="])
        #expect(throws: LoginFailure.self) { _ = try signer.sign(method: "GET", target: "/") }
    }

    @Test("the service is HTTP at the host, unless another is named")
    func service() async throws {
        let office = Office()
        _ = try await NegotiateScheme(office: office, host: "www.example.com").session(nil, now: 0)
        #expect(office.last?.service == "HTTP@www.example.com")
        _ = try await NegotiateScheme(office: office, host: "a", servicePrincipal: "HTTP/b").session(nil, now: 0)
        #expect(office.last?.service == "HTTP/b")
    }

    @Test("a keytab wins into memory, a cache is used as it is, and a password only where there is neither")
    func fields() async throws {
        let office = Office()
        let scheme = NegotiateScheme(office: office, host: "a")
        _ = try await scheme.session(credential(["principal": "r", "keytab": "/k", "password": "p"]), now: 0)
        #expect(office.last?.keytab == "/k")
        #expect(office.last?.cache == "MEMORY:countersign-robot-r")
        #expect(office.last?.password == nil)
        _ = try await scheme.session(credential(["ticket-cache": "FILE:/c"]), now: 0)
        #expect(office.last?.cache == "FILE:/c")
        _ = try await scheme.session(credential(["username": "ann", "password": "p"]), now: 0)
        #expect(office.last?.principal == "ann")
        #expect(office.last?.password == Secret("p"))
        _ = try await scheme.session(nil, now: 0)
        #expect(office.last?.principal == nil)
        #expect(office.last?.cache == nil)
    }

    @Test("without a ticket there is no session")
    func noTicket() async throws {
        let office = Office(failing: TicketError(.rejected, reason: "Preauthentication failed"))
        await #expect(throws: TicketError(.rejected, reason: "Preauthentication failed")) {
            _ = try await NegotiateScheme(office: office, host: "a").session(nil, now: 0)
        }
    }
}
