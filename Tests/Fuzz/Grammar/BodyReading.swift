// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// What `BodyDecoder` makes of a body, in memory that the next one gets again.
struct BodyReading {
    private(set) var data: [UInt8] = []
    /// As in `ChunkedText`.
    private(set) var trailers: [UInt8] = []
    /// Where it ended; -1 while it has not.
    private(set) var end = -1
    private(set) var isRefused = false

    /// Reads the body that begins at `start` in bytes of which more are there each time.
    mutating func read(
        _ framing: BodyFraming, _ bytes: [UInt8], from start: Int, arrivals: [Int]
    ) throws(Violation) {
        data.removeAll(keepingCapacity: true)
        trailers.removeAll(keepingCapacity: true)
        (end, isRefused) = (-1, false)
        var decoder = BodyDecoder(framing: framing)
        var position = start
        let span = bytes.span
        for arrived in arrivals where arrived >= position {
            while true {
                let window = span.extracting(position..<arrived)
                switch decoder.decode(window) {
                case .data(let range, let consumed):
                    try require(consumed > 0 && range.end <= consumed && consumed <= window.count, "data \(range)")
                    for index in range.bounds { data.append(window[index]) }
                    position += consumed
                    continue
                case .needMore(let consumed):
                    try require(consumed <= window.count, "more is done with than there is")
                    position += consumed
                case .end(let consumed):
                    try require(consumed <= window.count, "more is done with than there is")
                    end = position + consumed
                    noteTrailers(decoder.trailers, window)
                    return
                case .refused:
                    isRefused = true
                    return
                }
                break
            }
        }
    }

    private mutating func noteTrailers(_ lines: [FieldLine], _ window: Span<UInt8>) {
        for line in lines {
            for index in line.name.bounds { trailers.append(window[index]) }
            trailers.append(0x3A)
            for index in line.value.bounds { trailers.append(window[index]) }
            trailers.append(0x0A)
        }
    }
}
