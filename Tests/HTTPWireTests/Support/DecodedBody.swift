// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// What a decoder makes of a body whose bytes come in pieces.
struct DecodedBody: Equatable {
    var data: [UInt8] = []
    var trailers: [String] = []
    /// How many of the bytes belong to the body, where it ended.
    var length: Int?
    var refusal: WireErrorCode?

    /// Decodes `bytes`, of which ever more are there: up to each of `arrivals`, in the end all.
    init(_ bytes: [UInt8], framing: BodyFraming = .chunked, arrivals: [Int] = []) {
        var decoder = BodyDecoder(framing: framing)
        var consumed = 0
        for end in arrivals + [bytes.count] {
            while true {
                let window = bytes.span.extracting(consumed..<max(end, consumed))
                switch decoder.decode(window) {
                case .data(let range, let count):
                    data += window.copy(range)
                    consumed += count
                    continue
                case .needMore(let count):
                    consumed += count
                case .end(let count):
                    trailers = decoder.trailers.map { line in
                        bytes.span.text(line.name, from: consumed) + "=" + bytes.span.text(line.value, from: consumed)
                    }
                    length = consumed + count
                    return
                case .refused(let error):
                    refusal = error.code
                    return
                }
                break
            }
        }
    }
}

extension Span<UInt8> {
    fileprivate func text(_ range: ByteRange, from origin: Int) -> String {
        text(ByteRange(start: range.start + origin, end: range.end + origin))
    }
}
