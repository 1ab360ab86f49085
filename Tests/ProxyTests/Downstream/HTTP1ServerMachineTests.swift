// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@testable import Proxy

private typealias Machine = HTTP1ServerMachine

@Suite("The machine of a caller's connection")
struct HTTP1ServerMachineTests {
    // MARK: All pairs of a state and an event

    /// The states that differ in which events they allow, each reached as a connection reaches it.
    enum MappedAddress: String, CaseIterable {
        case fresh, midHead, decided, unreadable, receiving, received, responding, answered, later, ready
        case idle, quiet, switched, closing, lingering, closed
    }

    enum Event: String, CaseIterable {
        case readNothing, readMore, accept, endAfterRequest, awaitAnswer, answer, writesWholeResponse, responseBegan
        case responseIsWhole, bodyIsWanted, continueIsPassedOn, finish, switchProtocol, inputEnded, callerExists
        case breakOff, timeLimitPassed, releaseMemory, outputIsWritten, drain, drainIsOver, close
    }

    /// Events that any state takes, since they come from outside at any time.
    private static let anytime: Set<Event> = [
        .readNothing, .readMore, .inputEnded, .callerExists, .timeLimitPassed, .outputIsWritten, .drain,
        .drainIsOver, .close,
    ]
    /// Events of a request, for any kind of answer.
    private static let ofRequest: Set<Event> = [
        .endAfterRequest, .writesWholeResponse, .continueIsPassedOn, .finish, .breakOff,
    ]
    /// Further events that each state takes.
    private static let allowed: [MappedAddress: Set<Event>] = [
        .fresh: [.releaseMemory], .idle: [.releaseMemory], .quiet: [.releaseMemory], .midHead: [],
        .decided: ofRequest.union([.accept, .awaitAnswer, .answer]),
        .unreadable: ofRequest.union([.accept, .awaitAnswer, .answer]),
        .receiving: ofRequest.union([.answer, .responseBegan, .responseIsWhole, .bodyIsWanted, .switchProtocol]),
        .received: ofRequest.union([.answer, .responseBegan, .responseIsWhole, .bodyIsWanted, .switchProtocol]),
        .responding: ofRequest.union([.responseIsWhole, .bodyIsWanted]),
        .answered: ofRequest.union([.responseIsWhole, .bodyIsWanted]),
        .later: ofRequest.union([.answer]), .ready: ofRequest,
        .switched: [], .closing: [], .lingering: [], .closed: [],
    ]

    @Test("each state takes the events that are its own, and refuses all others", arguments: MappedAddress.allCases)
    func pairs(_ place: MappedAddress) throws {
        for event in Event.allCases {
            var machine = try Self.machine(at: place)
            let before = Self.facts(machine)
            Self.send(event, to: &machine)
            let isAllowed = Self.anytime.contains(event) || Self.allowed[place]?.contains(event) == true
            expect(machine.misuses, isAllowed ? 0 : 1, "\(place), \(event)")
            if !isAllowed { expect(Self.facts(machine), before, "\(place), \(event)") }
        }
    }

    private static func machine(at place: MappedAddress) throws -> Machine {
        var machine = Machine(limits: HeadLimits(), bodyPace: 8, trapsMisuse: false)
        switch place {
        case .fresh: break
        case .midHead: expect(machine.take("GET / HT"), .wait)
        case .decided: try machine.begin("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        case .unreadable: expect(machine.take("\u{16}"), .refuseHead(WireError(.requestLineInvalid)))
        case .receiving, .responding, .answered:
            try machine.begin("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
            machine.accept(isInputEmpty: true)
            if place == .responding { machine.responseBegan(keepsAlive: true, endsWithConnection: false) }
            if place == .answered { machine.responseIsWhole() }
        case .received:
            try machine.begin("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            machine.accept(isInputEmpty: true)
        case .later, .ready:
            try machine.begin("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
            machine.awaitAnswer()
            if place == .ready { expect(machine.answer(), .writeAfterBody) }
        case .idle, .quiet, .switched, .closing, .lingering:
            try machine.begin("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            machine.accept(isInputEmpty: true)
            if place == .switched {
                machine.switchProtocol()
            } else {
                let isLast = place == .closing || place == .lingering
                expect(machine.finish(mayStayOpen: !isLast), (isLast ? .close : .readNext))
            }
            if place == .quiet { expect(machine.timeLimitPassed(.nothing, isInputNew: false), .releaseMemory) }
            if place == .lingering { expect(machine.outputIsWritten(isInputEmpty: false), .linger) }
        case .closed: machine.close()
        }
        return machine
    }

    private static func send(_ event: Event, to machine: inout Machine) {
        switch event {
        case .readNothing: _ = machine.take("")
        case .readMore: _ = machine.take("GET /")
        case .accept: machine.accept(isInputEmpty: true)
        case .endAfterRequest: machine.endAfterRequest()
        case .awaitAnswer: machine.awaitAnswer()
        case .answer: _ = machine.answer()
        case .writesWholeResponse: _ = machine.writesWholeResponse()
        case .responseBegan: machine.responseBegan(keepsAlive: true, endsWithConnection: false)
        case .responseIsWhole: machine.responseIsWhole()
        case .bodyIsWanted: _ = machine.bodyIsWanted()
        case .continueIsPassedOn: machine.continueIsPassedOn()
        case .finish: _ = machine.finish(mayStayOpen: true)
        case .switchProtocol: machine.switchProtocol()
        case .inputEnded: _ = machine.inputEnded(.nothing)
        case .callerExists: machine.callerExists()
        case .breakOff: _ = machine.breakOff()
        case .timeLimitPassed: _ = machine.timeLimitPassed(.nothing, isInputNew: false)
        case .releaseMemory: machine.releaseMemory(limits: HeadLimits())
        case .outputIsWritten: _ = machine.outputIsWritten(isInputEmpty: true)
        case .drain: _ = machine.drain(.nothing, hasMore: false)
        case .drainIsOver: _ = machine.drainIsOver()
        case .close: machine.close()
        }
    }

    /// Returns the properties by which states differ.
    private static func facts(_ machine: borrowing Machine) -> [Bool] {
        [
            machine.isClosed, machine.isLingering, machine.awaitsHead, machine.isMidHead,
            machine.isServed, machine.isBodyComplete, machine.hasServed, machine.isQuiet,
            machine.keepsAlive(after: 200), machine.keepsAlive(after: 404), machine.drainIsOver() == .nothing,
            machine.vacancy(.nothing) != nil,
        ]
    }

    // MARK: Scripted callers

    static let scripts: [(bytes: String, facts: [String])] = [
        ("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", ["GET", "response", "idle", "end: close"]),
        (
            "GET /a HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /c",
            ["GET", "response", "idle", "GET", "response", "closing", "end: nothing"]
        ),
        ("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", ["GET", "response", "closing", "end: nothing"]),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            ["POST", "hello", "body ends", "response", "idle", "GET", "response", "idle", "end: close"]
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX: y\r\n\r\n",
            ["POST", "abcde", "1 trailers", "body ends", "response", "idle", "end: close"]
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello", ["POST", "hello", "end: close"]),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX",
            ["POST", "abc", "body refused", "reply", "closing", "end: nothing"]
        ),
        // A reply before a body that is short enough to be discarded, and before one that is not.
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            ["PUT", "reply", "idle", "GET", "response", "idle", "end: close"]
        ),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\nhello",
            ["PUT", "reply", "closing", "end: nothing"]
        ),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
            ["PUT", "reply", "closing", "end: nothing"]
        ),
        // After these nothing is read as a request.
        ("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nGET /", ["CONNECT", "response", "closing", "end: nothing"]),
        (
            "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /",
            ["HEAD", "abc", "body ends", "response", "closing", "end: nothing"]
        ),
        ("nonsense\r\nGET / HTTP/1.1\r\n\r\n", ["head refused", "reply", "closing", "end: nothing"]),
        ("\u{16}\u{3}", ["head refused", "reply", "closing", "end: nothing"]),
        ("GET / HTTP/1.1\r\nHo", ["end: close"]),
        ("", ["end: close"]),
    ]

    @Test("a caller's bytes are read the same way however they are split", arguments: scripts.indices)
    func cuts(_ index: Int) {
        let script = Self.scripts[index]
        let bytes = Array(script.bytes.utf8)
        var cuts: [[Int]] = [[bytes.count], Array(0...bytes.count)]
        for first in bytes.indices { cuts.append([first, bytes.count]) }
        for cut in cuts {
            var server = ScriptedServer()
            var start = 0
            for end in cut {
                server.receive(bytes[start..<end])
                start = end
            }
            server.end()
            expect(server.facts, script.facts, "\(script.bytes.debugDescription) cut at \(cut)")
            expect(server.misuses, 0)
        }
    }

    // MARK: Rules of one event

    @Test("100 is sent once to a caller that waits for it, but not after its body or a response has begun")
    func continues() throws {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        var machine = Machine(limits: HeadLimits(), bodyPace: 8)
        try machine.begin(head)
        machine.accept(isInputEmpty: true)
        expect(machine.takeTimeLimit(), TimeLimit.none)
        expect(machine.bodyIsWanted(), true)
        expect(machine.bodyIsWanted(), false)
        var late = Machine(limits: HeadLimits(), bodyPace: 8)
        try late.begin(head)
        late.accept(isInputEmpty: false)
        expect(late.bodyIsWanted(), false)
        var answered = Machine(limits: HeadLimits(), bodyPace: 8)
        try answered.begin(head)
        answered.accept(isInputEmpty: true)
        answered.responseBegan(keepsAlive: false, endsWithConnection: false)
        expect(answered.bodyIsWanted(), false)
        var passed = Machine(limits: HeadLimits(), bodyPace: 8)
        try passed.begin(head)
        passed.accept(isInputEmpty: true)
        passed.continueIsPassedOn()
        expect(passed.bodyIsWanted(), false)
    }

    private typealias TimeLimit = HTTP1ServerMachine.TimeLimit

    @Test(
        "the time limit is that of the first byte, the head, the body while it is wanted, and then of the next request")
    func timeLimits() throws {
        var machine = Machine(limits: HeadLimits(), bodyPace: 4)
        expect(machine.takeTimeLimit(), .firstByte)
        expect(machine.takeTimeLimit(), nil)
        _ = machine.take("POST / HTTP/1.1\r\n")
        expect(machine.takeTimeLimit(), .request)
        // Further bytes do not extend the limit.
        _ = machine.take("POST / HTTP/1.1\r\nHost: a\r\n")
        expect(machine.takeTimeLimit(), nil)
        try machine.begin("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        machine.accept(isInputEmpty: true)
        expect(machine.takeTimeLimit(), .body)
        expect(machine.take("abc"), .takeBody(ByteRange(start: 0, end: 3), consumed: 3))
        expect(machine.takeTimeLimit(), nil)
        _ = machine.take("d")
        expect(machine.takeTimeLimit(), .body)
        // No more is requested, so the caller cannot be late.
        expect(machine.take("e", wantsBody: false), .wait)
        expect(machine.takeTimeLimit(), TimeLimit.none)
        _ = machine.take("e")
        expect(machine.takeTimeLimit(), .body)
        _ = machine.take("fghi")
        expect(machine.take(""), .endBody(consumed: 0))
        expect(machine.takeTimeLimit(), TimeLimit.none)
        expect(machine.finish(mayStayOpen: true), .readNext)
        expect(machine.takeTimeLimit(), .quiet)
        expect(machine.timeLimitPassed(.nothing, isInputNew: false), .releaseMemory)
        expect(machine.takeTimeLimit(), .idle)
        expect(machine.timeLimitPassed(.nothing, isInputNew: false), .close)
    }

    @Test("a late head is refused, and one that arrived in the same turn is read first")
    func lateHeads() {
        var machine = Machine(limits: HeadLimits(), bodyPace: 8)
        _ = machine.take("GET /")
        let waiting = Machine.Waiting(isInputEmpty: false, isOutputEmpty: true)
        expect(machine.timeLimitPassed(waiting, isInputNew: true), .readFirst)
        expect(machine.timeLimitPassed(waiting, isInputNew: false), .refuseHead)
        expect(machine.answer(), .write)
        expect(machine.writesWholeResponse(), false)
        expect(machine.finish(mayStayOpen: true), .close)
    }

    @Test("a half-closed caller gets its response if its request is complete, and is checked once")
    func halfClosed() throws {
        var machine = try Self.machine(at: .received)
        expect(machine.inputEnded(.nothing), .checkCaller)
        expect(machine.inputEnded(.nothing), .nothing)
        machine.callerExists()
        _ = machine.takeTimeLimit()
        expect(machine.timeLimitPassed(.nothing, isInputNew: false), .checkCaller)
        expect(machine.finish(mayStayOpen: true), .close)
        expect(machine.outputIsWritten(isInputEmpty: true), .close)
        var broken = try Self.machine(at: .receiving)
        expect(broken.inputEnded(.nothing), .close)
        var answered = try Self.machine(at: .answered)
        expect(answered.inputEnded(.nothing), .breakOff)
        expect(answered.breakOff(), .finish)
    }

    @Test("a drain waits for a request in progress, one that is in the socket, and a caller's first one")
    func drains() throws {
        for place in [MappedAddress.midHead, .decided, .receiving, .later, .closing] {
            var machine = try Self.machine(at: place)
            expect(machine.drain(.nothing, hasMore: false), .nothing, "\(place)")
        }
        var idle = try Self.machine(at: .idle)
        expect(idle.drain(.nothing, hasMore: true), .nothing)
        expect(idle.drain(.nothing, hasMore: false), .close)
        var fresh = try Self.machine(at: .fresh)
        expect(fresh.drain(.nothing, hasMore: false), .nothing)
        expect(fresh.takeTimeLimit(), .drain)
        expect(fresh.timeLimitPassed(.nothing, isInputNew: false), .close)
        for (place, action) in [
            (MappedAddress.receiving, Machine.DrainEndAction.refuse), (.responding, .close), (.later, .close),
            (.idle, .close),
            (.closing, .nothing), (.lingering, .nothing),
        ] {
            expect(try Self.machine(at: place).drainIsOver(), action, "\(place)")
        }
        var unframed = try Self.machine(at: .received)
        unframed.responseBegan(keepsAlive: false, endsWithConnection: true)
        expect(unframed.drainIsOver(), .reset)
    }

    @Test("no request is read while a window of answers waits, and a head may be longer than the window")
    func windows() {
        var machine = Machine(limits: HeadLimits(head: 100_000), bodyPace: 8)
        let head = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        expect(machine.read(head.span, isOutputFull: true, wantsBody: false), .wait)
        expect(machine.inputEnded(.init(isInputEmpty: false, isOutputEmpty: false, isOutputFull: true)), .nothing)
        expect(machine.inputLimit, 104_096)
        expect(machine.read(head.span, isOutputFull: false, wantsBody: false), .takeHead(length: head.count))
        expect(machine.inputLimit, CallerStream.inputWindow)
    }
}

extension HTTP1ServerMachine {
    /// Passes `text` to the machine as all unread input.
    fileprivate mutating func take(_ text: String, wantsBody: Bool = true) -> ReadAction {
        read(Array(text.utf8).span, isOutputFull: false, wantsBody: wantsBody)
    }

    /// Passes a whole head to the machine.
    fileprivate mutating func begin(_ head: String) throws {
        let action = take(head)
        try #require(action == .takeHead(length: head.utf8.count))
    }
}

extension HTTP1ServerMachine.Waiting {
    /// State of both buffers when they are empty.
    fileprivate static let nothing = Self(isInputEmpty: true, isOutputEmpty: true)
}

/// Compares like `#expect`, which cannot take a call on a noncopyable value.
private func expect<Value: Equatable>(
    _ value: Value, _ expected: Value, _ comment: Comment? = nil, at location: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, comment, sourceLocation: location)
}
