// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import TestSupport
import Testing

private func request(lineLength: Int) -> [UInt8] {
    latin1("GET /" + String(repeating: "a", count: lineLength - 14) + " HTTP/1.1\r\nHost: a\r\n\r\n")
}

private func request(headLength: Int) -> [UInt8] {
    let around = "GET / HTTP/1.1\r\nHost: a\r\nA: \r\n\r\n".unicodeScalars.count
    return latin1(
        "GET / HTTP/1.1\r\nHost: a\r\nA: " + String(repeating: "a", count: headLength - around) + "\r\n\r\n")
}

private func request(fields: Int) -> [UInt8] {
    latin1("GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "A: b\r\n", count: fields - 1) + "\r\n")
}

@Test("a request line of exactly the limit is accepted, and one byte more is 414")
func lineLimit() {
    let limits = HeadLimits(line: 100)
    let fits = request(lineLength: 100)
    #expect(parse(fits, limits: limits) == .complete(length: fits.count))
    #expect(parse(request(lineLength: 101), limits: limits) == .refused(WireError(.requestLineTooLong)))
    #expect(
        parseByteByByte(request(lineLength: 101), limits: limits).outcome == .refused(WireError(.requestLineTooLong)))
    #expect(parseByteByByte(request(lineLength: 5000), limits: limits).used == 102)
    #expect(WireError(.requestLineTooLong).status == 414)
}

@Test("a request head of exactly the limit is accepted, and one byte more is 431")
func headLimit() {
    let limits = HeadLimits(head: 1000)
    let fits = request(headLength: 1000)
    #expect(fits.count == 1000)
    #expect(parse(fits, limits: limits) == .complete(length: 1000))
    #expect(parse(latin1("\r\n\r\n") + fits, limits: limits) == .complete(length: 1004))
    #expect(parseByteByByte(fits, limits: limits).outcome == .complete(length: 1000))
    #expect(parse(request(headLength: 1001), limits: limits) == .refused(WireError(.headTooLarge)))
    let slow = parseByteByByte(request(headLength: 9000), limits: limits)
    #expect(slow.outcome == .refused(WireError(.headTooLarge)))
    #expect(slow.used == 1001)
}

@Test("a request with as many fields as the limit is accepted, and one more is 431")
func fieldLimit() {
    let limits = HeadLimits(fieldCount: 10)
    let fits = request(fields: 10)
    #expect(parse(fits, limits: limits) == .complete(length: fits.count))
    #expect(parse(request(fields: 11), limits: limits) == .refused(WireError(.fieldsTooMany)))
    let defaults = request(fields: 100)
    #expect(parse(defaults) == .complete(length: defaults.count))
    #expect(parse(request(fields: 101)) == .refused(WireError(.fieldsTooMany)))
}

@Test("head limits are clamped to values that the parser can count")
func limitsAreClamped() {
    let none = HeadLimits(line: -1, head: .min, fieldCount: 0)
    #expect(none.line > 0 && none.head > 0 && none.fieldCount > 0)
    let all = HeadLimits(line: .max, head: .max, fieldCount: .max)
    #expect(all.line <= all.head && all.head <= 16_777_216 && all.fieldCount <= 65_536)
    #expect(HeadLimits() == HeadLimits(line: 8_192, head: 65_536, fieldCount: 100))
}

@Test("parsing the longest head byte by byte takes time proportional to its length")
func linearTime() {
    // One long line, many short ones: what a parser that looks again from the start of the line or the head is slow at.
    let limits = HeadLimits(line: 1_000_000, head: 4_000_000, fieldCount: 65_536)
    let shapes: [(Int) -> [UInt8]] = [
        { request(lineLength: $0) }, { request(headLength: $0) }, { request(fields: $0 / 6) },
    ]
    for shape in shapes {
        let small = shape(40_000)
        let large = shape(320_000)
        func fastest(_ bytes: [UInt8]) -> Int {
            (0..<3).map { _ in
                let start = threadTime()
                #expect(parseByteByByte(bytes, limits: limits).outcome == .complete(length: bytes.count))
                return threadTime() - start
            }.min() ?? 0
        }
        // Eight times the bytes; the square would be sixty-four times the time.
        #expect(fastest(large) < fastest(small) * 32)
    }
}
