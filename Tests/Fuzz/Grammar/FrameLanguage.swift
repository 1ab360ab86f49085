// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// NOTIFY frames of HAProxy, as SPOE.txt has them, without the length in front.
struct FrameLanguage: Language {
    static let name = "frames"

    var sentence = Sentence()
    private var found: FrameOracle.Question?
    private var isFrame = true
    private var values: [[UInt8]?] = [nil, nil, nil]
    private var times = [0, 0, 0]

    mutating func write() {
        isFrame = true
        found = nil
        (values, times) = ([nil, nil, nil], [0, 0, 0])
        let isWhole = !sentence.choices.once(in: 16)
        sentence.put(3)
        sentence.put("\0\0\0")
        sentence.put(isWhole ? 1 : 0)
        isFrame = isWhole
        putNumber(sentence.choices.number())
        putNumber(sentence.choices.number())
        if sentence.choices.once(in: 16) {
            // No number: it ends before it ends, or has more bits than there are.
            sentence.put(sentence.choices.pick(Self.broken))
            found = .malformed
            return
        }
        let messages = sentence.choices.once(in: 12) ? sentence.choices.below(3) : 1
        var isKnown = messages == 1
        for _ in 0..<messages {
            let isAuthorize = !sentence.choices.once(in: 16)
            putText(isAuthorize ? "authorize" : sentence.choices.flip() ? "authoriz" : "Authorize")
            if !isAuthorize { isKnown = false }
            writeArguments()
        }
        if sentence.choices.once(in: 24) {
            putNumber(UInt64(sentence.choices.below(300)) + 1)
            found = .malformed
            return
        }
        found = isKnown ? question : .unknown
    }

    private mutating func writeArguments() {
        (values, times) = ([nil, nil, nil], [0, 0, 0])
        let first = sentence.choices.below(3)
        let skipped = sentence.choices.once(in: 16) ? sentence.choices.below(3) : -1
        let extra = sentence.choices.once(in: 4) ? sentence.choices.below(3) : 0
        sentence.put(UInt8(3 - (skipped < 0 ? 0 : 1) + extra))
        for index in 0..<(3 + extra) {
            let kind = index < 3 ? (index + first) % 3 : sentence.choices.once(in: 3) ? sentence.choices.below(3) : 3
            if index < 3, kind == skipped { continue }
            putText(Self.names[kind])
            let value = putValue(kind)
            if kind < 3 {
                values[kind] = value
                times[kind] += 1
            }
        }
    }

    /// Returns its bytes if it is text.
    private mutating func putValue(_ kind: Int) -> [UInt8]? {
        let type = sentence.choices.once(in: 12) ? sentence.choices.below(8) : sentence.choices.flip() ? 8 : 9
        sentence.put(UInt8(type | (sentence.choices.below(16) << 4)))
        switch type {
        case 0, 1: return nil
        case 2...5:
            putNumber(sentence.choices.number())
            return nil
        case 6, 7:
            sentence.putAnything(type == 6 ? 4 : 16)
            return nil
        default: break
        }
        let text: StaticString =
            switch kind {
            case 0: sentence.choices.pick(Self.methods)
            case 1: sentence.choices.pick(Self.targets)
            default: sentence.choices.pick(Self.fields)
            }
        let start = sentence.count + (text.utf8CodeUnitCount < 240 ? 1 : 2)
        putText(text)
        return Array(sentence.bytes[start...])
    }

    private var question: FrameOracle.Question {
        guard times == [1, 1, 1], let method = values[0], let target = values[1], let fields = values[2] else {
            return .incomplete
        }
        for word in [method, target] where word.isEmpty || word.contains(where: { $0 <= 32 || $0 == 127 }) {
            return .invalid
        }
        return .question(method: method, target: target, fields: fields)
    }

    func check() throws(Violation) {
        let count = UInt32(sentence.count)
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + sentence.bytes
        let read: SPOPFrame?
        do throws(SPOPFault) { read = try SPOPFrame.read(bytes.span, limit: 65_536) } catch {
            try require(!isFrame || found == .malformed, "a frame is refused: \(error)")
            return
        }
        guard let frame = read else { throw Violation(description: "a whole frame is not read") }
        try require(isFrame && frame.kind == .notify, "a fragment is taken")
        let answer = try? SPOPNotification.read(frame.payload, in: bytes.span)
        switch (answer, found) {
        case (nil, .malformed), (.failure(.messageUnknown), .unknown), (.failure(.argumentsIncomplete), .incomplete),
            (.failure(.argumentInvalid), .invalid):
            break
        case (.success(let asked), .question(let method, let target, let fields)):
            var head = ByteQueue()
            asked.writeHead(in: bytes.span, to: &head)
            try require(
                head.withSpan { $0.array } == method + [0x20] + target + Array(" HTTP/1.1\r\n".utf8) + fields,
                "another head")
        default:
            throw Violation(description: "\(String(describing: answer)) where \(String(describing: found)) is right")
        }
    }

    // MARK: Elements

    private mutating func putNumber(_ number: UInt64) {
        guard number >= 240 else { return sentence.put(UInt8(number)) }
        sentence.put(UInt8(truncatingIfNeeded: number) | 0xF0)
        var rest = (number - 240) >> 4
        while rest >= 128 {
            sentence.put(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest = (rest - 128) >> 7
        }
        sentence.put(UInt8(rest))
    }

    private mutating func putText(_ text: StaticString) {
        putNumber(UInt64(text.utf8CodeUnitCount))
        sentence.put(text)
    }

    private static let names: [StaticString] = ["method", "target", "fields", "other"]
    private static let methods: [StaticString] = ["GET", "POST", "", "G T", "GET\r\n", "A\0", "\u{7F}", "get"]
    private static let targets: [StaticString] = [
        "/", "/a?b=c", "*", "http://a/b", "/a b", "/\r\nHost: b", "/\u{E9}", "", "/\t",
    ]
    private static let fields: [StaticString] = [
        "Host: a\r\n\r\n", "Host: a\r\nCookie: b=c\r\n\r\n", "", "\r\n", "Host: a\r\n\r\nGET / HTTP/1.1\r\n\r\n", "x",
        "\0",
        "Host: a\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n",
    ]
    private static let broken: [StaticString] = [
        "\u{80}", "\u{7F}a", "\u{9}authoriz", "\u{9}authorize", "\u{9}authorize\u{1}", "\u{9}authorize\u{1}\u{6}method",
    ]
}
