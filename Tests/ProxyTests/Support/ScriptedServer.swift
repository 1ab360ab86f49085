// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// Carries out a machine's decisions, and records them. PUT is answered by a local reply, other methods by a response
/// after their body.
struct ScriptedServer: ~Copyable {
    private var machine = HTTP1ServerMachine(limits: HeadLimits(), bodyPace: 8, trapsMisuse: false)
    private var input = ByteQueue()
    private var body = ""
    private(set) var facts: [String] = []

    var misuses: Int { machine.misuses }

    mutating func receive(_ bytes: ArraySlice<UInt8>) {
        for byte in bytes { input.append(byte) }
        while step() {}
    }

    mutating func end() {
        let action = machine.inputEnded(.init(isInputEmpty: input.isEmpty, isOutputEmpty: true))
        note("end: \(action)")
    }

    private mutating func note(_ fact: String) {
        if !body.isEmpty { facts.append(body) }
        body = ""
        facts.append(fact)
    }

    private mutating func step() -> Bool {
        let action = input.withSpan { machine.read($0, isOutputFull: false, wantsBody: true) }
        switch action {
        case .wait: return false
        case .takeHead(let length):
            let method = input.withSpan { bytes in machine.withHead { bytes.text($0.methodRange) } }
            input.consume(length)
            note(method)
            if method == "PUT" {
                reply()
            } else {
                machine.accept(isInputEmpty: input.isEmpty)
                if machine.isBodyComplete { respond() }
            }
        case .takeBody(let range, let consumed):
            body += input.withSpan { $0.text(range) }
            input.consume(consumed)
        case .skip(let consumed): input.consume(consumed)
        case .await(let consumed):
            input.consume(consumed)
            return false
        case .endBody(let consumed):
            if !machine.trailers.isEmpty { note("\(machine.trailers.count) trailers") }
            input.consume(consumed)
            note("body ends")
            respond()
        case .writeAnswer(let consumed):
            input.consume(consumed)
            write("reply")
        case .refuseHead:
            note("head refused")
            reply()
        case .refuseBody:
            note("body refused")
            if machine.breakOff() == .refuse { reply() }
        }
        return true
    }

    private mutating func reply() {
        if machine.answer() == .write { write("reply") }
    }

    private mutating func respond() {
        machine.responseBegan(keepsAlive: machine.keepsAlive(after: 200), endsWithConnection: false)
        note("response")
        finish()
    }

    private mutating func write(_ answer: String) {
        _ = machine.writesWholeResponse()
        note(answer)
        finish()
    }

    private mutating func finish() { note(machine.finish(mayStayOpen: true) == .readNext ? "idle" : "closing") }
}
