// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient

/// Writes families of metrics, one after the other, in one of the two formats.
///
/// OpenMetrics 1.0: a family's name lacks the `_total` of its counters' samples, its unit is the end of its name, and `# EOF` is the
/// last line. In the older format a family is called as its samples are, and units are not told.
struct MetricsText {
    /// What a family is.
    enum Kind: String {
        case counter, gauge, histogram, info
    }

    typealias Labels = [(name: String, value: String)]

    private let format: MetricsFormat
    private(set) var text = ""
    private var name = ""
    private var kind = Kind.gauge

    init(_ format: MetricsFormat) { self.format = format }

    /// Begins a family: `name` without the prefix of all, without `_total` and `_info`. `unit`: the end of the name, where that is one.
    mutating func family(_ name: String, _ kind: Kind, unit: String? = nil, _ help: String) {
        self.name = "countersign_\(name)"
        self.kind = kind
        let isOpenMetrics = format == .openMetrics
        let title = isOpenMetrics ? self.name : self.name + suffix
        let type = !isOpenMetrics && kind == .info ? Kind.gauge : kind
        text += "# TYPE \(title) \(type.rawValue)\n"
        if isOpenMetrics, let unit { text += "# UNIT \(title) \(unit)\n" }
        text += "# HELP \(title) \(Self.escaped(help, quotes: isOpenMetrics))\n"
    }

    /// A sample of a counter, a gauge or an info.
    mutating func sample(_ labels: Labels, _ value: String) { line(suffix, labels, value) }

    /// The same with a whole number.
    mutating func sample(_ labels: Labels, _ value: some BinaryInteger) { line(suffix, labels, "\(value)") }

    /// A sample of a family without labels.
    mutating func sample(_ value: String) { line(suffix, [], value) }

    /// The same with a whole number.
    mutating func sample(_ value: some BinaryInteger) { line(suffix, [], "\(value)") }

    /// The samples of a histogram of seconds.
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

    /// The end of all.
    mutating func finish() {
        if format == .openMetrics { text += "# EOF\n" }
    }

    /// Nanoseconds as seconds, without an exponent and without zeros at the end, but with a fraction as OpenMetrics wants it for `le`.
    static func seconds(nanoseconds: UInt64) -> String {
        var fraction = String(nanoseconds % 1_000_000_000)
        fraction = String(repeating: "0", count: 9 - fraction.utf8.count) + fraction
        while fraction.utf8.count > 1, fraction.hasSuffix("0") { fraction.removeLast() }
        return "\(nanoseconds / 1_000_000_000).\(fraction)"
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

    /// A backslash, the end of a line, and a quotation mark where that has a meaning.
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
