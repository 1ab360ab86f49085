// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The paths that servers are known to make of one path, the path itself included.
///
/// Servers take the same steps, but each in an order of its own, and some of them twice or not at all: Tomcat strips
/// parameters before it decodes, nginx decodes first and keeps them, IIS once decoded twice, Apache resolves dot segments
/// before it decodes slashes. So the readings are all that any order of the steps leads to, two decodings at most.
enum PathReadings {
    /// More readings than this are refused.
    private static let mostReadings = 128
    /// The steps may read this many bytes together; a path that takes more is refused, for it would hold the loop up.
    private static let mostBytes = 1 << 20

    /// Returns whether every server reads the path as it stands.
    static func isPlain(_ path: Span<UInt8>) -> Bool {
        var previous: UInt8 = 0
        for index in path.indices {
            let byte = path[index]
            switch byte {
            case .percent, .semicolon, .backslash: return false
            case .slash, .dot: if previous == .slash { return false }
            default: break
            }
            previous = byte
        }
        return true
    }

    /// Returns whether `condition` holds for every reading of `path`, itself included. `false` if there are too many, and if one holds
    /// what servers take for yet another character: NUL, `%u002f`, or UTF-8 that is longer than it need be (RFC 3629 §3).
    static func allSatisfy(_ path: [UInt8], _ condition: ([UInt8]) -> Bool) -> Bool {
        var seen: Set<[UInt8]> = [path]
        var bytesLeft = mostBytes
        var level = [path]
        for decodings in 0...2 {
            // The first time that a reading is seen is the one after the fewest decodings.
            var next: [[UInt8]] = []
            while let reading = level.popLast() {
                guard !PathSteps.isObscure(reading), condition(reading) else { return false }
                for step in PathSteps.all where decodings < 2 || !step.decodes {
                    bytesLeft -= reading.count
                    guard bytesLeft > 0 else { return false }
                    let result = step.apply(reading)
                    guard result != reading, seen.insert(result).inserted else { continue }
                    guard seen.count <= mostReadings else { return false }
                    if step.decodes { next.append(result) } else { level.append(result) }
                }
            }
            level = next
        }
        return true
    }
}
