// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Synchronization
import Testing

@Suite("Bodies that are longer than what is kept")
struct LongBodyTests {
    private let body = LongBody(count: 3_000_000)

    private func proxy(_ upstream: UploadUpstream) throws -> TestProxy {
        let login = Authenticator.scripted(port: upstream.port) { number, _, _ in .bearer("\(number)") }
        return try TestProxy(.bank(port: upstream.port, replay: ReplayTiers(memory: 65_536), logins: [login]))
    }

    private func upload(_ proxy: TestProxy, _ request: [UInt8]) throws -> (head: String, body: String) {
        let caller = try proxy.connect()
        startThread(sending: request, to: caller)
        return try caller.message()
    }

    /// Establishes a session some time before the request that uses it.
    private func logIn(_ proxy: TestProxy) throws {
        #expect(try proxy.fetch(get()).head.hasPrefix("HTTP/1.1 200 "))
        #expect(proxy.log.count == 1)
        // A new session would be confirmed where it works.
        proxy.clock.advance(by: 31)
    }

    @Test("without a session it is established before a long body, which is sent once")
    func ahead() throws {
        let upstream = try UploadUpstream { answer("200 OK", "\($0.body.count)") }
        let proxy = try proxy(upstream)
        #expect(try upload(proxy, post(body)).body == "3000000")
        #expect(upstream.heads.count == 1)
        #expect(upstream.uploads.first?.has("Authorization: Bearer 1") == true)
        #expect(upstream.uploads.map(\.body) == [body])
    }

    @Test("a session that is rejected before a long body is established again first, and the body is sent once")
    func rejected() throws {
        let upstream = try UploadUpstream(
            react: { head in
                head.hasPrefix("GET ") || head.contains("\r\nAuthorization: Bearer 2\r\n") ? .read : .refuse(challenge)
            }, answer: { !$0.head.contains("Bearer") ? challenge : answer("200 OK", "\($0.body.count)") })
        let proxy = try proxy(upstream)
        try logIn(proxy)
        #expect(try upload(proxy, post(body)).body == "3000000")
        let posts = upstream.heads.filter { $0.hasPrefix("POST ") }
        #expect(posts.count == 2)
        #expect(posts.allSatisfy { $0.contains("\r\nExpect: 100-continue\r\n") })
        #expect(upstream.uploads.last?.body == body)
        #expect(proxy.log.count == 2)
    }

    @Test("an upstream that ignores the expectation gets the body after a second, and is not asked again")
    func ignored() throws {
        let upstream = try UploadUpstream(
            react: { _ in .readSilently }, answer: { answer("200 OK", "\($0.body.count)") })
        let proxy = try proxy(upstream)
        let caller = try proxy.connect()
        startThread(sending: post(body), to: caller)
        proxy.wait("the head") { upstream.heads.count == 1 }
        proxy.settle()
        proxy.pass(.seconds(1))
        #expect(try caller.message().body == "3000000")
        #expect(try upload(proxy, post(body)).body == "3000000")
        #expect(upstream.heads.map { $0.contains("\r\nExpect: ") } == [true, false])
        #expect(upstream.uploads.map(\.body) == [body, body])
    }

    @Test("an upstream that refuses the expectation gets the request without it, once")
    func refused() throws {
        let upstream = try UploadUpstream(
            react: { $0.contains("\r\nExpect: ") ? .refuse(answer("417 Expectation Failed", "no")) : .read },
            answer: { answer("200 OK", "\($0.body.count)") })
        let proxy = try proxy(upstream)
        for _ in 0..<2 { #expect(try upload(proxy, post(body)).body == "3000000") }
        #expect(upstream.heads.map { $0.contains("\r\nExpect: ") } == [true, false, false])
        #expect(upstream.uploads.map(\.body) == [body, body])
    }

    @Test("a 417 to the repeated request without our expectation is the answer")
    func ownExpectation() throws {
        let upstream = try UploadUpstream(
            react: { _ in .refuse(answer("417 Expectation Failed", "no")) }, answer: { _ in answer() })
        let proxy = try proxy(upstream)
        let (head, text) = try upload(proxy, post(body))
        #expect(head.hasPrefix("HTTP/1.1 417 "))
        #expect(text == "no")
        #expect(upstream.heads.count == 2)
    }

    @Test("a challenge after 100 Continue is too late, and has a remedy; the next request has the new session")
    func late() throws {
        let upstream = try UploadUpstream { upload in
            let isWell = upload.head.hasPrefix("GET ") || upload.has("Authorization: Bearer 2")
            return isWell && upload.head.contains("Bearer") ? answer("200 OK", "well") : challenge
        }
        let proxy = try proxy(upstream)
        try logIn(proxy)
        let (head, text) = try upload(proxy, post(body))
        #expect(head.hasPrefix("HTTP/1.1 413 "))
        #expect(text.contains("Send the request again in a moment"))
        proxy.wait("the login that began meanwhile") { proxy.log.finished == 2 }
        proxy.settle()
        #expect(try upload(proxy, post(body)).body == "well")
        #expect(proxy.log.count == 2)
    }

    @Test("bodies that can be kept, and those in chunks, do not wait", arguments: [nil, 1000])
    func short(chunk: Int?) throws {
        let upstream = try UploadUpstream(
            react: { _ in .readSilently }, answer: { answer("200 OK", "\($0.body.count)") })
        let proxy = try proxy(upstream)
        #expect(try upload(proxy, post(LongBody(count: 20_000), inChunksOf: chunk)).body == "20000")
        #expect(upstream.heads.allSatisfy { !$0.contains("Expect") })
        #expect(proxy.log.count == 0)
    }
}
