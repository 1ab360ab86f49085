// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient

/// Writes families of metrics, one after the other, in one of the two formats.
///
/// In OpenMetrics 1.0, the name of a counter's family lacks the `_total` of its samples, the unit is the end of the name, and `#
/// EOF` is the last line. In the older format, a family has the name of its samples, and there are no units.
struct MetricsText {
    /// The type of a family.
    enum Kind: String {
        case counter, gauge, histogram, info
    }

    typealias Labels = [(name: String, value: String)]

    private let format: MetricsFormat
    private(set) var text = ""
    private var name = ""
    private var kind = Kind.gauge

    init(_ format: MetricsFormat) { self.format = format }

    /// Begins a family. `name` is without the prefix `countersign_`, `_total` and `_info`. Metrics of the process and of a probe
    /// have no prefix, by Prometheus' convention. `unit` is the end of the name, if that is a unit.
    mutating func family(_ name: String, _ kind: Kind, unit: String? = nil, _ help: String) {
        self.name = name.hasPrefix("process_") || name.hasPrefix("probe_") ? name : "countersign_\(name)"
        self.kind = kind
        let isOpenMetrics = format == .openMetrics
        let title = isOpenMetrics ? self.name : self.name + suffix
        let type = !isOpenMetrics && kind == .info ? Kind.gauge : kind
        text += "# TYPE \(title) \(type.rawValue)\n"
        if isOpenMetrics, let unit { text += "# UNIT \(title) \(unit)\n" }
        text += "# HELP \(title) \(Self.escaped(help, quotes: isOpenMetrics))\n"
    }

    /// Writes a sample of a counter, a gauge or an info.
    mutating func sample(_ labels: Labels, _ value: String) { line(suffix, labels, value) }

    /// Writes a sample with a whole number.
    mutating func sample(_ labels: Labels, _ value: some BinaryInteger) { line(suffix, labels, "\(value)") }

    /// Writes a sample without labels.
    mutating func sample(_ value: String) { line(suffix, [], value) }

    /// Writes a sample without labels, with a whole number.
    mutating func sample(_ value: some BinaryInteger) { line(suffix, [], "\(value)") }

    /// Writes the samples of a histogram of seconds.
    mutating func histogram(_ labels: Labels = [], _ histogram: LatencyHistogram) {
        var sum: UInt64 = 0
        for (bound, count) in zip(LatencyHistogram.bounds, histogram.counts) {
            sum &+= count
            line("_bucket", labels + [("le", Self.seconds(nanoseconds: bound * 1000))], "\(sum)")
        }
        line("_bucket", labels + [("le", "+Inf")], "\(histogram.count)")
        line("_sum", labels, Self.seconds(nanoseconds: histogram.nanoseconds))
        line("_count", labels, "\(histogram.count)")
    }

    /// Writes the end of the text.
    mutating func finish() {
        if format == .openMetrics { text += "# EOF\n" }
    }

    /// Returns nanoseconds as seconds, without an exponent and trailing zeros, but with a fraction, as OpenMetrics needs for
    /// `le`.
    static func seconds(nanoseconds: UInt64) -> String {
        var fraction = String(nanoseconds % 1_000_000_000)
        fraction = String(repeating: "0", count: 9 - fraction.utf8.count) + fraction
        while fraction.utf8.count > 1, fraction.hasSuffix("0") { fraction.removeLast() }
        return "\(nanoseconds / 1_000_000_000).\(fraction)"
    }

    /// Returns a time in milliseconds since 1970 as seconds.
    static func timestamp(milliseconds: Int64) -> String {
        let time = UInt64(clamping: milliseconds)
        return "\(time / 1000).\(String(time % 1000 + 1000).dropFirst())"
    }

    private var suffix: String {
        switch kind {
        case .counter: "_total"
        case .info: "_info"
        case .gauge, .histogram: ""
        }
    }

    private mutating func line(_ suffix: String, _ labels: Labels, _ value: String) {
        text += name
        text += suffix
        if !labels.isEmpty {
            let written = labels.map { "\($0.name)=\"\(Self.escaped($0.value, quotes: true))\"" }
            text += "{\(written.joined(separator: ","))}"
        }
        text += " \(value)\n"
    }

    /// Escapes backslashes, line feeds and, with `quotes`, quotation marks.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += #"\\"#
            case "\n": result += #"\n"#
            case "\"" where quotes: result += #"\""#
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

/// The two formats of metrics.
package enum MetricsFormat: Sendable, CaseIterable {
    /// OpenMetrics 1.0.
    case openMetrics
    /// Prometheus' text format, version 0.0.4, for clients without OpenMetrics.
    case prometheus

    /// Chooses the format for a request with that `Accept` (RFC 9110 §12.5.1): OpenMetrics if it is named and plain
    /// text is not preferred. A client that accepts anything, such as a script, gets the format that every tool reads.
    package init(accept: String) {
        let ranges = accept.utf8.split(separator: UInt8(ascii: ","), maxSplits: Self.mostRanges).prefix(Self.mostRanges)
            .compactMap { MediaRange(Substring($0)) }
        let named = ranges.filter { $0.type != "*" }
        let openMetrics = MediaRange.quality(of: "application", "openmetrics-text", in: named)
        let text = MediaRange.quality(of: "text", "plain", in: ranges)
        self = openMetrics > 0 && openMetrics >= text ? .openMetrics : .prometheus
    }

    /// The number of ranges that are read; the rest is ignored.
    private static let mostRanges = 64

    /// The media type of the format.
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
    /// The weight, in thousandths.
    let quality: Int

    /// Parses a member; `nil` if invalid (RFC 9110 §12.5.1).
    init?(_ text: Substring) {
        // Tokens are ASCII, and so are the names that they are compared with.
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

    /// Returns a `qvalue` in thousandths: 0 to 1, with up to three decimals (RFC 9110 §12.4.2); `nil` if invalid.
    private static func thousandths(_ weight: Substring) -> Int? {
        let parts = weight.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let decimals = parts.count == 2 ? parts[1] : ""[...].utf8
        guard let whole = parts.first, whole.count == 1, decimals.count <= 3,
            decimals.allSatisfy(\.isDigit)
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

    /// Returns the weight of a type by the most specific range; 0 if no range includes the type.
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
