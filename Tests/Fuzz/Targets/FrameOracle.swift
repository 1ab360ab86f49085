// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reads the payload of a NOTIFY frame as SPOE.txt of HAProxy has it, all at once and with nothing shared with the reader in question.
struct FrameOracle {
    enum Question: Equatable {
        case malformed, unknown, incomplete, invalid
        case question(method: [UInt8], target: [UInt8], fields: [UInt8])
    }

    private struct End: Error {}

    private var rest: ArraySlice<UInt8>

    init(_ payload: ArraySlice<UInt8>) { rest = payload }

    /// What is asked.
    var question: Question {
        var copy = self
        guard let messages = try? copy.messages() else { return .malformed }
        guard messages.count == 1, let message = messages.first, message.name == "authorize" else { return .unknown }
        var found: [[UInt8]] = []
        for name in ["method", "target", "fields"] {
            let values = message.arguments.filter { $0.name == name }
            guard values.count == 1, let text = values[0].text else { return .incomplete }
            found.append(text)
        }
        let words = found.prefix(2)
        guard words.allSatisfy({ !$0.isEmpty && $0.allSatisfy { $0 > 32 && $0 != 127 } }) else { return .invalid }
        return .question(method: found[0], target: found[1], fields: found[2])
    }

    private mutating func messages() throws -> [(name: String, arguments: [(name: String, text: [UInt8]?)])] {
        var messages: [(name: String, arguments: [(name: String, text: [UInt8]?)])] = []
        while !rest.isEmpty {
            let name = try text()
            var arguments: [(name: String, text: [UInt8]?)] = []
            for _ in 0..<(try take(1)[0]) { arguments.append((Self.name(try text()), try value())) }
            messages.append((Self.name(name), arguments))
        }
        return messages
    }

    private mutating func value() throws -> [UInt8]? {
        switch try take(1)[0] % 16 {
        case 0, 1: break
        case 2, 3, 4, 5: _ = try number()
        case 6: _ = try take(4)
        case 7: _ = try take(16)
        case 8, 9: return try text()
        default: throw End()
        }
        return nil
    }

    private mutating func text() throws -> [UInt8] {
        guard let count = Int(exactly: try number()) else { throw End() }
        return try take(count)
    }

    /// In 128 bits, in which nothing here overflows before it is seen to be too large.
    private mutating func number() throws -> UInt64 {
        var value = UInt128(try take(1)[0])
        var factor: UInt128 = 16
        var isMore = value >= 240
        while isMore {
            let next = UInt128(try take(1)[0])
            isMore = next >= 128
            // Beyond all numbers of 64 bits, be it by zeros.
            guard factor <= UInt128(UInt64.max) else { throw End() }
            value += next * factor
            factor *= 128
        }
        guard let small = UInt64(exactly: value) else { throw End() }
        return small
    }

    private mutating func take(_ count: Int) throws -> [UInt8] {
        guard count <= rest.count else { throw End() }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    private static func name(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
