// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPWire

/// Writes the frames of an agent (SPOE.txt section 3.2). Each is built separately, because its length precedes it.
struct SPOPWriter: ~Copyable {
    private enum Kind: UInt8 {
        case hello = 101
        case disconnect = 102
        case acknowledgement = 103
    }

    private var frame = ByteQueue()

    /// The size of the frame under construction, in bytes.
    var count: Int { frame.count }

    /// Releases the memory.
    mutating func releaseMemory() { frame.removeAll(keepingCapacity: 0) }

    /// Writes AGENT-HELLO with this agent's properties. With `pipelining`, requests may arrive before earlier answers, which stay
    /// in order. Without it, HAProxy 2.6 sometimes forgets a queued request.
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

    /// Writes AGENT-DISCONNECT, the last frame of a connection.
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

    /// Begins an ACK to a frame of HAProxy. Variables follow, then `end`.
    mutating func beginAcknowledgement(stream: UInt64, number: UInt64) {
        begin(.acknowledgement, stream: stream, number: number)
    }

    /// Writes a variable of the transaction. Characters that its name cannot have become `_`.
    mutating func variable(_ prefix: StaticString, _ name: Span<UInt8> = Span(), text: Span<UInt8>) {
        setVariable(prefix, name)
        value(text)
    }

    /// Writes a variable of the transaction with a number.
    mutating func variable(_ name: StaticString, number: UInt64) {
        setVariable(name, Span())
        // Type 4 is a signed 64-bit integer, as HAProxy stores integers.
        frame.append(4)
        self.number(number)
    }

    /// Writes a variable of the transaction with the value true.
    mutating func variable(true name: StaticString) {
        setVariable(name, Span())
        frame.append(17)
    }

    /// Completes the frame and appends it to `output`.
    mutating func end(to output: inout ByteQueue) {
        let count = UInt32(clamping: frame.count)
        for shift: UInt32 in [24, 16, 8, 0] { output.append(UInt8(truncatingIfNeeded: count >> shift)) }
        frame.withSpan { output.append($0) }
        frame.removeAll()
    }

    /// Returns true if a variable of `bytes` bytes leaves the frame within `limit`.
    func fits(_ bytes: Int, within limit: Int) -> Bool { frame.count + bytes + 32 <= limit }

    // MARK: Elements

    private mutating func begin(_ kind: Kind, stream: UInt64 = 0, number: UInt64 = 0) {
        frame.removeAll()
        frame.append(kind.rawValue)
        // The flags: the last, and only, fragment.
        for byte: UInt8 in [0, 0, 0, 1] { frame.append(byte) }
        self.number(stream)
        self.number(number)
    }

    private mutating func setVariable(_ prefix: StaticString, _ name: Span<UInt8>) {
        // The action SET-VAR, its three arguments, and the scope: a transaction.
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
        byte.isAlphanumeric ? byte.lowercased : UInt8(ascii: "_")
    }
}

extension LocalReply {
    /// Makes the reply to a frame that does not identify a request.
    init(_ fault: SPOPNotification.Fault, listener: String) {
        let said =
            switch fault {
            case .messageUnknown: "Over SPOP, an auth-request listener accepts one message, named authorize."
            case .argumentsIncomplete:
                "The message authorize needs method=method target=pathq fields=req.hdrs, each once and not empty."
            case .argumentInvalid: "The arguments of the message authorize do not form a valid request head."
            }
        self.init(
            .badRequest,
            detail: "\(said) Fix the configuration of the HAProxy that uses listener \(listener); see the examples.")
    }

    /// The variables for HAProxy, the most important first: a frame may not have room for all.
    fileprivate var variables: [(name: String, value: String)] {
        [
            ("code", code.rawValue), ("detail", visibleDetail), ("proxy_status", proxyStatus),
            ("document", plainDocument),
        ]
    }

    /// The document in ASCII, in one line. HAProxy would escape any other character, for example as `%0A`.
    private var plainDocument: String {
        String(decoding: document, as: UTF8.self).utf16.reduce(into: "") { text, unit in
            switch unit {
            case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            case 0x80...:
                text += "\\u\(Hex.encode(unit))"
            default: break
            }
        }
    }
}

extension SPOPWriter {
    /// Writes a reply as variables of the transaction, as far as a frame of `limit` bytes has room.
    mutating func write(_ reply: LocalReply, within limit: Int) {
        variable("status", number: UInt64(reply.status))
        if let retryAfter = reply.retryAfter { variable("retry_after", number: UInt64(max(0, retryAfter))) }
        for (name, value) in reply.variables where fits(value.utf8.count, within: limit) {
            variable("", name.utf8.span, text: value.utf8.span)
        }
    }
}
