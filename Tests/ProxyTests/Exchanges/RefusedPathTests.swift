// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Synchronization
import TestSupport
import Testing

@Suite("Paths that refuse a token")
struct RefusedPathTests {
    /// A server that accepts one token, and refuses every token at the paths below `/no`.
    private final class Resource: Sendable {
        let valid = Mutex("t1")
        let refusesAll = Atomic<Bool>(false)

        func upstream() throws -> AnsweringUpstream {
            try AnsweringUpstream { [self] head, _ in
                let path = head.split(separator: " ").dropFirst().first.map(String.init) ?? ""
                if path == "/public" { return answer("200 OK", "all") }
                let isValid = head.contains("Authorization: Bearer \(valid.withLock { $0 })\r\n")
                let isRefused = path.hasPrefix("/no") || refusesAll.load(ordering: .relaxed)
                return isValid && !isRefused ? answer("200 OK", "in") : challenge
            }
        }
    }

    private let resource = Resource()

    private func proxy(_ upstream: AnsweringUpstream) throws -> TestProxy {
        try TestProxy(
            .bank(
                port: upstream.port,
                logins: [
                    .scripted(port: upstream.port) { [resource] _, _, _ in
                        .bearer(resource.valid.withLock { $0 })
                    }
                ]))
    }

    @Test("200 of them cost no login while the token works elsewhere, and each caller gets the answer as it came")
    func worksElsewhere() throws {
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        #expect(try proxy.fetch(get("/yes")).body == "in")
        for number in 0..<200 { #expect(try proxy.fetch(get("/no/\(number)")).body == "denied") }
        #expect(try proxy.fetch(get("/yes")).body == "in")
        #expect(proxy.log.count == 1)
    }

    @Test("50 of them cost one login in 30 s if the server refuses every token")
    func refusesAll() throws {
        resource.refusesAll.store(true, ordering: .relaxed)
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        for number in 0..<50 { #expect(try proxy.fetch(get("/\(number)")).body == "denied") }
        #expect(proxy.log.count == 1)
        proxy.clock.advance(by: 30)
        for number in 50..<100 { #expect(try proxy.fetch(get("/\(number)")).body == "denied") }
        #expect(proxy.log.count == 2)
    }

    @Test("a token that is revoked a moment after its login is renewed at once, wherever that is noticed")
    func revoked() throws {
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        #expect(try proxy.fetch(get("/yes")).body == "in")
        for (number, path) in ["/yes", "/other"].enumerated() {
            resource.valid.withLock { $0 = "t\(number + 2)" }
            #expect(try proxy.fetch(get(path)).body == "in")
            #expect(proxy.log.count == number + 2)
        }
    }

    @Test("a page that is public does not show that a token still works")
    func publicPage() throws {
        let upstream = try resource.upstream()
        let proxy = try proxy(upstream)
        #expect(try proxy.fetch(get("/yes")).body == "in")
        proxy.pass(.milliseconds(10))
        #expect(try proxy.fetch(get("/public")).body == "all")
        resource.valid.withLock { $0 = "t2" }
        #expect(try proxy.fetch(get("/other")).body == "in")
        #expect(proxy.log.count == 2)
    }
}
