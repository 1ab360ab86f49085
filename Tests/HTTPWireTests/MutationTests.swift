// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import TestSupport
import Testing

/// Returns a valid message with a few bytes changed in ways that confuse parsers.
private func mutated(_ bytes: [UInt8], _ random: inout SplitMix) -> [UInt8] {
    let nasty: [UInt8] = [0, 9, 10, 13, 32, 34, 35, 37, 44, 45, 47, 48, 58, 59, 61, 91, 93, 127, 128, 255]
    var result = bytes
    for _ in 0..<Int.random(in: 1...4, using: &random) where !result.isEmpty {
        let position = Int.random(in: 0..<result.count, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: result[position] = nasty.randomElement(using: &random) ?? 0
        case 1: result[position] = UInt8.random(in: 0...255, using: &random)
        case 2: result.insert(nasty.randomElement(using: &random) ?? 0, at: position)
        case 3: result.remove(at: position)
        case 4: result.removeSubrange(position..<min(result.count, position + 8))
        default: result.insert(contentsOf: result[position..<min(result.count, position + 12)], at: position)
        }
    }
    return result
}

@Test("no mutated request traps, and parsing it byte by byte gives the same result", arguments: 0..<8)
func mutatedRequests(_ seed: UInt64) {
    var random = SplitMix(state: seed)
    let seeds = HeadCases.all.map(\.bytes).filter { $0.count < 400 }
    for _ in 0..<800 {
        let bytes = mutated(seeds.randomElement(using: &random) ?? [], &random)
        let whole = parse(bytes)
        let slow = parseByteByByte(bytes)
        #expect(whole == slow.outcome, "\(bytes)")
        guard case .complete(let length) = whole else { continue }
        #expect(length <= bytes.count && length == slow.used)
        expectSound(slow.head, in: bytes, length: length)
    }
}

/// Expects the invariants of an accepted head.
private func expectSound(_ head: RequestHead, in bytes: [UInt8], length: Int) {
    for line in head.fields {
        #expect(line.name.start < line.name.end && line.name.end <= line.value.start && line.value.end <= length)
        for byte in bytes[line.value.bounds] { #expect(byte == 9 || (byte >= 32 && byte != 127)) }
        for byte in bytes[line.name.bounds] { #expect(byte > 32 && byte < 127 && byte != 58) }
    }
    #expect(head.fields.count { $0.kind == .host } <= 1)
    #expect(head.fields.count { $0.kind == .contentLength || $0.kind == .transferEncoding } <= 1)
    #expect(head.version == .http10 || head.host != nil)
    switch head.body {
    case .none: #expect(head.first(.contentLength) == nil && head.first(.transferEncoding) == nil)
    case .length(let length): #expect(length <= UInt64(Int64.max) && head.first(.contentLength) != nil)
    case .chunked: #expect(head.first(.transferEncoding) != nil && head.version == .http11)
    }
}

@Test("no mutated chunked body traps, and cutting it anywhere gives the same result", arguments: 0..<8)
func mutatedChunks(_ seed: UInt64) {
    var random = SplitMix(state: seed)
    let seeds = (ChunkedCase.taken + ChunkedCase.refused).map { latin1($0.raw) }.filter { $0.count < 200 }
    for _ in 0..<800 {
        let bytes = mutated(seeds.randomElement(using: &random) ?? [], &random)
        let whole = DecodedBody(bytes)
        #expect(DecodedBody(bytes, arrivals: Array(0...bytes.count)) == whole, "\(bytes)")
        #expect((whole.length ?? 0) <= bytes.count)
        #expect(whole.data.count <= bytes.count)
    }
}

@Test("no mutated response traps", arguments: 0..<4)
func mutatedResponses(_ seed: UInt64) {
    var random = SplitMix(state: seed)
    let start = latin1(
        "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 5, 5\r\nConnection: close, x\r\nX: y\r\n"
            + "Set-Cookie: a=b; Path=/\r\n\r\n")
    var scanner = ResponseHeadScanner()
    var taken = 0
    for _ in 0..<2_000 {
        let bytes = mutated(start, &random)
        do throws(WireError) {
            try scanner.scan(bytes.span)
            taken += 1
            for line in scanner.head.fields { #expect(line.value.end <= bytes.count) }
        } catch {
            #expect(error.status == 502)
        }
    }
    #expect(taken > 0)
}
