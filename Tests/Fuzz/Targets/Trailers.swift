// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// The lines behind a body as libcurl hands them over, one by one: whatever stands up to each LF, with it.
func fuzzTrailers(_ input: Span<UInt8>) throws(Violation) {
    var trailers = TrailerLines()
    var expected: [(name: String, value: [UInt8])] = []
    var held = 0
    var rest = input.array[...]
    var count = 0
    while !rest.isEmpty {
        let line = rest.prefix(through: rest.firstIndex(of: 10) ?? rest.index(before: rest.endIndex))
        rest = rest[line.endIndex...]
        count += 1
        let isWhole = line.count >= 2 && line.suffix(2).elementsEqual([13, 10])
        let field = isWhole ? Oracle.field(line.dropLast(2)) : nil
        let fits = count <= 64 && held + line.count <= 16_384
        do throws(WireError) {
            try trailers.append(line: line.span)
        } catch {
            try require(error.status == 502, "an upstream's fault is told as \(error.status)")
            try require(field == nil || !fits, "a field is refused")
            break
        }
        guard let field, fits else { throw Violation(description: "what is no field is taken, or too much") }
        guard !ChunkOracle.mustNotTrail(field.name) else { continue }
        expected.append((field.name, field.value))
        held += field.nameEnd - line.startIndex + field.value.count + 4
    }
    var found: [(name: String, value: [UInt8])] = []
    trailers.forEach { name, value in found.append((name.string.lowercased(), value.array)) }
    try require(found.elementsEqual(expected) { $0 == $1 }, "\(found) where \(expected) is right")
    let written = trailers.lines.withSpan { $0.array }
    try require(trailers.isEmpty == written.isEmpty && written.count == held, "\(written.count) bytes are held")
    // Written behind a body they are the same section to whoever reads it.
    let section = Oracle.section((written + [13, 10])[...])
    try require(section?.lines.count == expected.count && section?.end == written.count + 2, "a section that splits")
}
