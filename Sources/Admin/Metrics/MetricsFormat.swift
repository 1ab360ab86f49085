// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The two formats that metrics are written in.
package enum MetricsFormat: Sendable, CaseIterable {
    /// OpenMetrics 1.0.
    case openMetrics
    /// Prometheus' text format, version 0.0.4, for whoever does not take the other.
    case prometheus

    /// The format for a request with that `Accept` (RFC 9110 §12.5.1): OpenMetrics, unless it is not wanted, or less than plain
    /// text is.
    package init(accept: String) {
        let ranges = accept.utf8.split(separator: UInt8(ascii: ","), maxSplits: Self.mostRanges).prefix(Self.mostRanges)
            .compactMap { MediaRange(Substring($0)) }
        guard !ranges.isEmpty else {
            self = .openMetrics
            return
        }
        let openMetrics = MediaRange.quality(of: "application", "openmetrics-text", in: ranges)
        let text = MediaRange.quality(of: "text", "plain", in: ranges)
        self = openMetrics > 0 && openMetrics >= text ? .openMetrics : .prometheus
    }

    /// What a caller names beyond these is not looked at.
    private static let mostRanges = 64

    /// Its media type.
    package var contentType: String {
        switch self {
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        }
    }
}

/// A member of `Accept`.
private struct MediaRange {
    let type: String
    let subtype: String
    /// In thousandths.
    let quality: Int

    /// `nil` where it is none by the grammar (RFC 9110 §12.5.1).
    init?(_ text: Substring) {
        // Tokens are ASCII, and so is what is compared with them.
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map { $0.trimmed.lowercased() }
        let names = (parts.first ?? "").split(separator: "/", omittingEmptySubsequences: false)
        guard names.count == 2, !names[0].isEmpty, !names[1].isEmpty else { return nil }
        type = String(names[0])
        subtype = String(names[1])
        let weight = parts.dropFirst().first { $0.hasPrefix("q=") }?.dropFirst(2)
        guard let quality = weight.map({ Self.thousandths($0) }) ?? 1000 else { return nil }
        self.quality = quality
    }

    /// A `qvalue` in thousandths: 0 to 1, with three digits after the point at most (RFC 9110 §12.4.2); `nil` where it is none.
    private static func thousandths(_ weight: Substring) -> Int? {
        let parts = weight.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let decimals = parts.count == 2 ? parts[1] : ""[...].utf8
        guard let whole = parts.first, whole.count == 1, decimals.count <= 3,
            decimals.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        let fraction = [100, 10, 1].enumerated().reduce(0) { sum, digit in
            sum + (decimals.dropFirst(digit.offset).first.map { Int($0 - 0x30) } ?? 0) * digit.element
        }
        switch whole.first {
        case UInt8(ascii: "0"): return fraction
        case UInt8(ascii: "1"): return fraction == 0 ? 1000 : nil
        default: return nil
        }
    }

    /// The weight that the most specific of the ranges gives to a type; none where no range has it.
    static func quality(of type: String, _ subtype: String, in ranges: [MediaRange]) -> Int {
        for (wantedType, wantedSubtype) in [(type, subtype), (type, "*"), ("*", "*")] {
            let fitting = ranges.filter { $0.type == wantedType && $0.subtype == wantedSubtype }
            if let best = fitting.map(\.quality).max() { return best }
        }
        return 0
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var rest = drop { $0 == " " || $0 == "\t" }
        while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
        return rest
    }
}
