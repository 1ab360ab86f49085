// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import EventLoop
import Testing

@testable import ChallengeClient
@testable import HTTPWire

@Suite("An exchange between a fake caller and a fake upstream")
struct ExchangeTests {
    // MARK: Answers

    @Test("an answer goes to the caller as it comes")
    func answers() throws {
        let rig = try ExchangeRig()
        rig.get("/balance?of=me")
        #expect(rig.stream?.head == "GET /balance?of=me HTTP/1.1\r\nHost: bank\r\n\r\n")
        rig.stream?.answer("103 Early Hints")
        rig.settle()
        rig.stream?.answer("200 OK", "Content-Length: 4", body: "12")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["interim 103", "head 200", "body 12"])
        rig.stream?.send("34")
        rig.stream?.end()
        rig.settle()
        #expect(rig.caller.takeEvents() == ["body 34", "ended"])
        #expect(rig.stream?.isReleased == true)
    }

    @Test("what the caller does not take waits in the transfer, and is offered again when there is room")
    func backPressure() throws {
        let rig = try ExchangeRig()
        rig.caller.takesBody = false
        rig.get()
        rig.stream?.answerWhole("200 OK", body: "12")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200"])
        rig.caller.takesBody = true
        rig.exchange.resumeResponse()
        #expect(rig.caller.takeEvents() == ["body 12", "ended"])
    }

    @Test("an answer that comes while the body still goes is whole first, and the exchange ends with the body")
    func earlyAnswer() throws {
        let rig = try ExchangeRig()
        rig.post("", framing: .length(4), isComplete: false)
        rig.stream?.answerWhole("200 OK", body: "in")
        rig.settle()
        #expect(rig.caller.takeEvents().filter { $0 != "wants body" } == ["head 200", "body in", "whole"])
        rig.send("1234")
        rig.exchange.receiveBodyEnd()
        rig.stream?.end()
        rig.settle()
        #expect(rig.caller.takeEvents().last == "ended")
        #expect(rig.stream?.body == "1234")
    }

    @Test("a truncated answer is reported as broken, and one that never began as failed")
    func breaks() throws {
        let rig = try ExchangeRig()
        rig.get()
        rig.stream?.answer("200 OK", "Content-Length: 9", body: "12")
        rig.settle()
        rig.stream?.end(.receiveError)
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "body 12", "broke upstreamUnreachable"])
        rig.post("12")
        rig.stream?.end(.receiveError)
        rig.settle()
        #expect(rig.caller.takeEvents().last == "failed upstreamUnreachable")
        #expect(rig.sendings == 2)
    }

    // MARK: Limits of time

    @Test("an upstream that says nothing is given up after timeouts.response, and not before")
    func responseLimit() throws {
        let rig = try ExchangeRig(timeouts: .init(response: .seconds(60)))
        rig.get()
        rig.pass(.milliseconds(59_999))
        #expect(rig.caller.events.isEmpty)
        rig.pass(.milliseconds(1))
        #expect(rig.caller.takeEvents() == ["failed upstreamTimeout"])
        #expect(rig.stream?.isReleased == true)
    }

    @Test("an answer that stops in its middle is cut off after timeouts.idle")
    func idleLimit() throws {
        let rig = try ExchangeRig(timeouts: .init(response: .seconds(5), idle: .seconds(300)))
        rig.get()
        rig.stream?.answer("200 OK", "Content-Length: 9", body: "12")
        rig.pass(.seconds(299))
        rig.stream?.send("3")
        rig.pass(.seconds(299))
        #expect(rig.caller.takeEvents() == ["head 200", "body 12", "body 3"])
        rig.pass(.seconds(1))
        #expect(rig.caller.takeEvents() == ["broke upstreamTimeout"])
    }

    @Test("an answer is not late while the caller's own body is waited for")
    func slowCaller() throws {
        let rig = try ExchangeRig(timeouts: .init(response: .seconds(5)))
        rig.post("", framing: .length(2), isComplete: false)
        rig.pass(.seconds(3600))
        #expect(rig.caller.takeEvents().allSatisfy { $0 == "wants body" })
        rig.send("12")
        rig.exchange.receiveBodyEnd()
        rig.settle()
        rig.pass(.seconds(5))
        #expect(rig.caller.takeEvents().last == "failed upstreamTimeout")
    }

    // MARK: Connections that end

    @Test("a request goes again where its resting connection had ended, four times at most, and a POST never")
    func resends() throws {
        for method in [RequestMethod.put, .post] {
            let rig = try ExchangeRig()
            rig.streams.prepare = { $0.isStale = true }
            rig.post("12", method: method)
            for _ in 0...ExchangeMachine.maxResends {
                rig.stream?.end(.gotNothing)
                rig.settle()
            }
            #expect(rig.sendings == (method == .put ? 1 + ExchangeMachine.maxResends : 1))
            #expect(rig.streams.all.allSatisfy { $0.body == "12" && $0.isReleased })
            #expect(rig.caller.takeEvents().last == "failed upstreamUnreachable")
        }
    }

    @Test("a caller that goes away ends the transfer, and gets no further event")
    func cancels() throws {
        let rig = try ExchangeRig()
        rig.get()
        rig.exchange.cancel()
        #expect(rig.stream?.isReleased == true)
        rig.pass(.seconds(3600))
        #expect(rig.caller.events.isEmpty)
    }

    // MARK: The request's body

    @Test("the upstream decides on 100: a caller gets it once the body is wanted")
    func continues() throws {
        let rig = try ExchangeRig()
        rig.post("", framing: .length(2), expects: true, isComplete: false)
        #expect(rig.stream?.head.contains("Expect: 100-continue\r\n") == true)
        rig.stream?.answer("100 Continue")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["wants body"])
    }

    @Test("a request whose expectation is refused goes again without it, and that upstream is not asked for a while")
    func expectationRefused() throws {
        let rig = try ExchangeRig()
        rig.post("12", expects: true)
        rig.stream?.answer("417 Expectation Failed", "Content-Length: 0")
        rig.settle()
        #expect(rig.sendings == 2)
        #expect(rig.stream?.head.contains("Expect") == false)
        #expect(rig.stream?.body == "12")
        #expect(!rig.client.expectations.isHonored(at: rig.loop.now))
        rig.stream?.answerWhole("200 OK")
        rig.settle()
        #expect(rig.caller.takeEvents().last == "ended")
    }

    @Test("a 417 of an upstream that has sent 100 before goes to the caller")
    func refusedAfterContinue() throws {
        let rig = try ExchangeRig()
        rig.post("12", expects: true)
        rig.stream?.answer("100 Continue")
        rig.stream?.answer("417 Expectation Failed", "Content-Length: 0")
        rig.settle()
        #expect(rig.sendings == 1)
        #expect(rig.caller.events.contains("head 417"))
    }

    @Test("trailers are sent after the body, in order")
    func trailers() throws {
        let rig = try ExchangeRig()
        rig.post("12", framing: .chunked, isComplete: false)
        let bytes = Array("A: 1".utf8)
        let line = FieldLine(
            name: ByteRange(start: 0, end: 1), value: ByteRange(start: 3, end: 4), kind: .other, isNominated: false)
        rig.exchange.receiveTrailer(line, in: bytes.span)
        rig.exchange.receiveBodyEnd()
        rig.settle()
        #expect(rig.stream?.trailers == ["A: 1"])
        #expect(rig.stream?.isBodyComplete == true)
    }
}
