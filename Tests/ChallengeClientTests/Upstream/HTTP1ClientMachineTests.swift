// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import HTTPWire
import Testing

@testable import ChallengeClient

private typealias Machine = HTTP1ClientMachine

@Suite("The machine of a connection to an upstream")
struct HTTP1ClientMachineTests {
    /// The states that differ in which events they allow, each reached as a connection reaches it.
    enum Stage: String, CaseIterable {
        case unconnected, connecting, sending, held, awaitingContinue, waitedInVain, readingBody, refused, answered
        case switching, switched, ended, resting, reused, ignored, closed
    }

    enum Event: String, CaseIterable {
        case begin, connected, holdHead, endHold, endWait, readNothing, readMore, inputEnded, settle, end, rest, ready
        case close
    }

    /// Events that any state takes, since they come from outside at any time.
    private static let anytime: Set<Event> = [.connected, .endHold, .endWait, .settle, .rest, .ready, .close]
    /// Events of a request in progress.
    private static let ofRequest: Set<Event> = [.readNothing, .readMore, .inputEnded, .end]
    /// Further events that each state takes.
    private static let allowed: [Stage: Set<Event>] = [
        .unconnected: [.begin], .connecting: [.end], .sending: ofRequest.union([.holdHead]), .held: ofRequest,
        .awaitingContinue: ofRequest, .waitedInVain: ofRequest.union([.holdHead]),
        .readingBody: ofRequest.union([.holdHead]), .refused: ofRequest, .answered: ofRequest.union([.holdHead]),
        .switching: ofRequest.union([.holdHead]), .switched: [], .ended: [], .resting: [.begin],
        .reused: ofRequest.union([.holdHead]), .ignored: [], .closed: [],
    ]

    @Test("each state takes the events that are its own, and refuses all others", arguments: Stage.allCases)
    func pairs(_ stage: Stage) throws {
        for event in Event.allCases {
            let client = try Self.client(at: stage)
            let before = Self.facts(client.machine)
            Self.send(event, to: client)
            let isAllowed = Self.anytime.contains(event) || Self.allowed[stage]?.contains(event) == true
            expect(client.machine.misuses, isAllowed ? 0 : 1, "\(stage), \(event)")
            if !isAllowed { expect(Self.facts(client.machine), before, "\(stage), \(event)") }
        }
    }

    private static func client(at stage: Stage) throws -> ScriptedClient {
        let client = try ScriptedClient()
        let upload = ExchangeRequest(method: .post, framing: .length(3))
        let get = ExchangeRequest(method: .get, framing: .none)
        switch stage {
        case .unconnected: break
        case .connecting: client.begin(upload, connects: false)
        case .sending:
            client.begin(upload)
            client.endTurn()
        case .held: client.begin(upload)
        case .awaitingContinue, .waitedInVain:
            client.begin(ExchangeRequest(method: .post, framing: .length(3), expectsContinue: true))
            if stage == .waitedInVain { client.endWait() }
        case .readingBody, .refused, .answered:
            let isRefused = stage == .refused
            client.begin(upload)
            client.endTurn()
            client.receive("HTTP/1.1 \(isRefused ? 400 : 200) OK\r\nContent-Length: 1\r\n\r\n".utf8)
            if stage == .answered { client.receive("x".utf8) }
        case .switching, .switched:
            let handshake = ExchangeRequest(method: .get, framing: .none, isUpgrade: true)
            client.begin(handshake)
            let answer = Array("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".utf8)
            if stage == .switched {
                client.receive(answer)
            } else {
                client.change { _ = $0.read(answer.span, into: client.transfer) }
            }
        case .ended, .resting, .reused, .ignored:
            client.begin(get)
            client.receive("HTTP/1.1 204 None\r\n\r\n".utf8)
            if stage != .ended { #expect(client.rest()) }
            if stage == .reused || stage == .ignored { client.begin(get) }
            if stage == .ignored { client.endInput() }
        case .closed: client.change { $0.close() }
        }
        return client
    }

    private static func send(_ event: Event, to client: ScriptedClient) {
        let bytes = Array((event == .readMore ? "x" : "").utf8)
        client.change { machine in
            switch event {
            case .begin: _ = machine.begin(.none, awaitsContinue: false)
            case .connected: _ = machine.connected()
            case .holdHead: machine.holdHead()
            case .endHold: _ = machine.endHold()
            case .endWait: _ = machine.endWait()
            case .readNothing, .readMore: _ = machine.read(bytes.span, into: client.transfer)
            case .inputEnded: _ = machine.inputEnded()
            case .settle: _ = machine.settle(isSent: true)
            case .end: _ = machine.end(isKept: true)
            case .rest: _ = machine.becomeIdle()
            case .ready: _ = machine.ready()
            case .close: machine.close()
            }
        }
    }

    /// Returns the properties by which states differ.
    private static func facts(_ machine: borrowing Machine) -> [Bool] {
        [
            machine.isRunning, machine.isConnecting, machine.isIdle, machine.hasSwitched, machine.awaitsContinue,
            machine.isHeld, machine.hasWaited, machine.wasIgnored, machine.ready() == .advance,
            machine.ready() == .close, machine.interest(isPaused: false, hasOutput: false).isEmpty,
            machine.interest(isPaused: false, hasOutput: true).contains(.write),
        ]
    }

    @Test("the loop tells of input while more of the answer may come, and of output unless the head is held")
    func interest() throws {
        func interest(at stage: Stage, isPaused: Bool = false, hasOutput: Bool = false) throws -> [Bool] {
            let interest = try Self.client(at: stage).machine.interest(isPaused: isPaused, hasOutput: hasOutput)
            return [interest.contains(.read), interest.contains(.write)]
        }
        #expect(try interest(at: .sending) == [true, false])
        #expect(try interest(at: .sending, hasOutput: true) == [true, true])
        #expect(try interest(at: .held, hasOutput: true) == [true, false])
        #expect(try interest(at: .readingBody, isPaused: true) == [false, false])
        #expect(try interest(at: .answered, hasOutput: true) == [false, true])
        for stage in [Stage.unconnected, .connecting, .switched, .ended, .resting, .ignored, .closed] {
            #expect(try interest(at: stage, hasOutput: true) == [false, false], "\(stage)")
        }
    }

    @Test("a new connection takes the next request where its first one is not sent, unless it was for that one alone")
    func withdrawn() throws {
        for isKept in [true, false] {
            let client = try Self.client(at: .connecting)
            client.change { #expect($0.end(isKept: isKept) == (isKept ? .keep : .close)) }
            client.change { #expect($0.connected() == .nothing) }
            client.change { #expect($0.becomeIdle() == isKept) }
            client.change { if isKept { #expect($0.begin(.none, awaitsContinue: false) == .send) } }
            #expect(client.machine.wasIgnored == false)
        }
    }

    @Test("bytes on a connection between two requests close it")
    func readiness() throws {
        for stage in Stage.allCases {
            let action: Machine.ReadyAction =
                switch stage {
                case .ended, .resting: .close
                case .unconnected, .connecting, .switched, .ignored, .closed: .nothing
                default: .advance
                }
            expect(try Self.client(at: stage).machine.ready(), action, "\(stage)")
        }
    }

    @Test("a server ignores a request if it ends a connection that was used before without a byte of an answer")
    func ignored() throws {
        for stage in Stage.allCases {
            let client = try Self.client(at: stage)
            client.endInput()
            expect(client.machine.wasIgnored, stage == .reused || stage == .ignored, "\(stage)")
        }
        let heard = try Self.client(at: .reused)
        heard.receive("H".utf8)
        heard.endInput()
        expect(heard.machine.wasIgnored, false)
        #expect(heard.outcome.end == .failed(.weirdServerReply))
    }

    @Test("a head without an end is refused when it is longer than any head may be")
    func endless() throws {
        let client = try Self.client(at: .reused)
        client.receive("HTTP/1.1 200 OK\r\nX: ".utf8)
        client.receive(repeatElement(UInt8(ascii: "x"), count: Transfer.headLimit))
        #expect(client.outcome.fault == .headTooLarge && client.outcome.end == .failed(.writeError))
    }
}
