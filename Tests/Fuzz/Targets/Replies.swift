// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Redis

/// Replies of a session store: the reader agrees with `ReplyOracle`, in pieces as well as whole; and with small bounds either
/// the same or nothing.
func fuzzReplies(_ input: Span<UInt8>) throws(Violation) {
    var dice = Dice(input)
    let expected = ReplyOracle.read(input.array)
    let whole = read(input, arrivals: [input.count], ReplyReader.Limits())
    try require(whole == expected, "\(whole) where \(expected) is right")
    let cut = read(input, arrivals: dice.arrivals(input.count), ReplyReader.Limits())
    try require(cut == whole, "in pieces it reads otherwise: \(cut) and \(whole)")
    let limits = ReplyReader.Limits(bytes: 1 + dice.below(200), elements: dice.below(20), line: 1 + dice.below(40))
    let bounded = read(input, arrivals: dice.arrivals(input.count), limits)
    try require(
        bounded.replies.elementsEqual(whole.replies.prefix(bounded.replies.count)),
        "with bounds it reads otherwise: \(bounded) and \(whole)")
    try require(
        bounded.error != nil || bounded == whole, "with bounds less is read, and no reason told: \(bounded)")
    let command = Command(whole.replies.compactMap(\.bytes).map(Command.Argument.init))
    let again = read(command.bytes.span, arrivals: dice.arrivals(command.bytes.count), ReplyReader.Limits())
    try require(
        again.replies == [.array(whole.replies.compactMap(\.bytes).map(Reply.string))] && again.error == nil,
        "a command reads as something else: \(again)")
}

/// Returns all replies of bytes that arrive in pieces, and the reason for the end of reading, if any.
private func read(_ bytes: Span<UInt8>, arrivals: [Int], _ limits: ReplyReader.Limits) -> ReplyOracle.Outcome {
    var reader = ReplyReader(limits: limits)
    var outcome = ReplyOracle.Outcome()
    var start = 0
    for end in arrivals {
        reader.feed(bytes.extracting(start..<end))
        start = end
        do throws(ReplyError) {
            while let reply = try reader.next() { outcome.replies.append(reply) }
        } catch {
            outcome.error = error
            return outcome
        }
    }
    return outcome
}

/// RESP2 read a second time, slowly, over an array that is all there.
struct ReplyOracle {
    /// The replies, and why reading ended before the end.
    struct Outcome: Equatable {
        var replies: [Reply] = []
        var error: ReplyError?
    }

    private enum Stop: Error {
        case incomplete
        case broken(ReplyError)
    }

    private let bytes: [UInt8]
    private var position = 0
    private var elements = 0

    static func read(_ bytes: [UInt8]) -> Outcome {
        var oracle = ReplyOracle(bytes: bytes)
        var outcome = Outcome()
        do throws(Stop) {
            while oracle.position < bytes.count {
                oracle.elements = 0
                outcome.replies.append(try oracle.reply(depth: 0))
            }
        } catch {
            if case .broken(let reason) = error { outcome.error = reason }
        }
        return outcome
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private mutating func reply(depth: Int) throws(Stop) -> Reply {
        guard position < bytes.count else { throw .incomplete }
        let kind = bytes[position]
        position += 1
        switch kind {
        case UInt8(ascii: "+"): return .status(String(decoding: try line(), as: UTF8.self))
        case UInt8(ascii: "-"): return .error(String(decoding: try line(), as: UTF8.self))
        case UInt8(ascii: ":"): return .integer(try number())
        case UInt8(ascii: "$"): return try string()
        case UInt8(ascii: "*"):
            guard depth < 8 else { throw .broken(.tooDeep) }
            let count = try number()
            guard (-1...Int64(Int32.max)).contains(count) else { throw .broken(.malformed) }
            if count < 0 { return .null }
            elements += Int(count)
            guard elements <= 16_384 else { throw .broken(.tooManyElements) }
            var found: [Reply] = []
            for _ in 0..<count { found.append(try reply(depth: depth + 1)) }
            return .array(found)
        default: throw .broken(.malformed)
        }
    }

    private mutating func string() throws(Stop) -> Reply {
        let count = try number()
        guard count >= -1 else { throw .broken(.malformed) }
        if count < 0 { return .null }
        guard count < bytes.count, position + Int(count) + 2 <= bytes.count else { throw .incomplete }
        let end = position + Int(count)
        guard bytes[end] == 13, bytes[end + 1] == 10 else { throw .broken(.malformed) }
        defer { position = end + 2 }
        return .string(Array(bytes[position..<end]))
    }

    private mutating func line() throws(Stop) -> ArraySlice<UInt8> {
        var end = position
        while end + 1 < bytes.count {
            if bytes[end] == 13, bytes[end + 1] == 10 {
                defer { position = end + 2 }
                return bytes[position..<end]
            }
            end += 1
        }
        throw .incomplete
    }

    /// As the protocol writes it: no `+`, no zero in front, no `-0`.
    private mutating func number() throws(Stop) -> Int64 {
        let digits = String(decoding: try line(), as: UTF8.self)
        guard let number = Int64(digits), String(number) == digits else { throw .broken(.malformed) }
        return number
    }
}
