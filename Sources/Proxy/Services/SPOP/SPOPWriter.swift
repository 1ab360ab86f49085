// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Writes the frames of an agent (SPOE.txt section 3.2), each put together aside, for its length stands before it.
struct SPOPWriter: ~Copyable {
    private enum Kind: UInt8 {
        case hello = 101
        case disconnect = 102
        case acknowledgement = 103
    }

    private var frame = ByteQueue()

    /// The number of bytes of the frame that is being put together.
    var count: Int { frame.count }

    /// Gives its memory back.
    mutating func becomeQuiet() { frame.removeAll(keepingCapacity: 0) }

    /// AGENT-HELLO: what both know. Questions may come ahead of answers (`pipelining`), which are in order all the same: where HAProxy
    /// has to wait for each answer, version 2.6 forgets a question at times that it has queued meanwhile.
    mutating func hello(frameLimit: Int, to output: inout ByteQueue) {
        begin(.hello)
        text("version")
        value("2.0".utf8.span)
        text("max-frame-size")
        frame.append(3)
        number(UInt64(frameLimit))
        text("capabilities")
        value("pipelining".utf8.span)
        end(to: &output)
    }

    /// AGENT-DISCONNECT: nothing follows.
    mutating func disconnect(_ fault: SPOPFault, to output: inout ByteQueue) {
        begin(.disconnect)
        text("status-code")
        frame.append(3)
        number(UInt64(fault.rawValue))
        text("message")
        frame.append(8)
        text(fault.message)
        end(to: &output)
    }

    /// ACK to a frame of HAProxy's; variables follow, and `end`.
    mutating func beginAcknowledgement(stream: UInt64, number: UInt64) {
        begin(.acknowledgement, stream: stream, number: number)
    }

    /// A variable of the transaction. In its name stands `_` for what a name cannot have.
    mutating func variable(_ prefix: StaticString, _ name: Span<UInt8> = Span(), text: Span<UInt8>) {
        setVariable(prefix, name)
        value(text)
    }

    /// A variable of the transaction whose value is a number.
    mutating func variable(_ name: StaticString, number: UInt64) {
        setVariable(name, Span())
        // Signed, of 64 bits: so HAProxy keeps its integers.
        frame.append(4)
        self.number(number)
    }

    /// A variable of the transaction that is true.
    mutating func variable(true name: StaticString) {
        setVariable(name, Span())
        frame.append(17)
    }

    /// The frame is whole.
    mutating func end(to output: inout ByteQueue) {
        let count = UInt32(clamping: frame.count)
        for shift: UInt32 in [24, 16, 8, 0] { output.append(UInt8(truncatingIfNeeded: count >> shift)) }
        frame.withSpan { output.append($0) }
        frame.removeAll()
    }

    /// True if a variable with a name and a value of so many bytes leaves the frame within `limit`.
    func fits(_ bytes: Int, within limit: Int) -> Bool { frame.count + bytes + 32 <= limit }

    // MARK: Elements

    private mutating func begin(_ kind: Kind, stream: UInt64 = 0, number: UInt64 = 0) {
        frame.removeAll()
        frame.append(kind.rawValue)
        // The last piece of its payload, and the only one.
        for byte: UInt8 in [0, 0, 0, 1] { frame.append(byte) }
        self.number(stream)
        self.number(number)
    }

    private mutating func setVariable(_ prefix: StaticString, _ name: Span<UInt8>) {
        // The action, its three arguments, and the scope: a transaction.
        for byte: UInt8 in [1, 3, 2] { frame.append(byte) }
        number(UInt64(prefix.utf8CodeUnitCount + name.count))
        frame.append(prefix)
        for index in name.indices { frame.append(Self.nameByte(name[index])) }
    }

    private mutating func value(_ bytes: Span<UInt8>) {
        frame.append(8)
        number(UInt64(bytes.count))
        frame.append(bytes)
    }

    private mutating func text(_ text: StaticString) {
        number(UInt64(text.utf8CodeUnitCount))
        frame.append(text)
    }

    private mutating func number(_ value: UInt64) {
        guard value >= 240 else { return frame.append(UInt8(value)) }
        frame.append(UInt8(truncatingIfNeeded: value) | 240)
        var rest = (value - 240) >> 4
        while rest >= 128 {
            frame.append(UInt8(truncatingIfNeeded: rest) | 128)
            rest = (rest - 128) >> 7
        }
        frame.append(UInt8(rest))
    }

    private static func nameByte(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte + 32
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
        default: UInt8(ascii: "_")
        }
    }
}
