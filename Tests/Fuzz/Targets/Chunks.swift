// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// A body in chunks, and what follows it. Also the same bytes as the data of chunks that we write.
func fuzzChunks(_ input: Span<UInt8>) throws(Violation) {
    var dice = Dice(input)
    let expected = ChunkOracle.read(input.array)
    let whole = try decoded(input, arrivals: [input.count])
    try require(whole.isSame(as: expected), "\(whole) where \(expected) is right")
    let cut = try decoded(input, arrivals: dice.arrivals(input.count))
    try require(cut == whole, "in pieces it reads otherwise: \(cut) and \(whole)")
    try checkWriting(input, &dice)
}

/// What a decoder finds in bytes that arrive in pieces.
private func decoded(_ bytes: Span<UInt8>, arrivals: [Int]) throws(Violation) -> ChunkOracle.Outcome {
    var decoder = BodyDecoder(framing: .chunked)
    var outcome = ChunkOracle.Outcome()
    var start = 0
    for end in arrivals {
        while true {
            let window = bytes.extracting(start..<end)
            switch decoder.decode(window) {
            case .data(let range, let consumed):
                try require(
                    consumed > 0 && consumed <= window.count && range.end <= consumed && !range.isEmpty,
                    "data \(range) in \(consumed) bytes of \(window.count)")
                outcome.data += window.copy(range)
                start += consumed
                continue
            case .needMore(let consumed):
                try require((0...window.count).contains(consumed), "\(consumed) of \(window.count) bytes are done with")
                start += consumed
            case .end(let consumed):
                try require((0...window.count).contains(consumed), "\(consumed) of \(window.count) bytes are done with")
                outcome.trailers = decoder.trailers.map { line in
                    window.text(line.name).lowercased() + ":" + window.text(line.value)
                }
                outcome.end = start + consumed
                try require(decoder.decode(window) == .end(consumed: 0), "the end is not final")
                return outcome
            case .refused(let error):
                outcome.refusal = error.code
                outcome.isRefused = true
                try require(decoder.decode(window) == .refused(error), "a refusal is not final")
                return outcome
            }
            break
        }
    }
    return outcome
}

/// What we write as chunks is read as what was put in, and ends where we ended.
private func checkWriting(_ input: Span<UInt8>, _ dice: inout Dice) throws(Violation) {
    var output = ByteQueue()
    var start = 0
    for end in dice.arrivals(input.count) {
        ResponseWriter.chunk(input.extracting(start..<end), to: &output)
        start = end
    }
    ResponseWriter.lastChunk(to: &output)
    ResponseWriter.field("Checksum", "x", to: &output)
    ResponseWriter.endOfHead(to: &output)
    let written = output.withSpan { $0.array }
    let read = ChunkOracle.read(written)
    try require(read.end == written.count && read.trailers == ["checksum:x"], "what is written does not end")
    try require(read.data == input.array, "what is written reads as something else")
}
