// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// A small line chart of the last ten minutes as inline SVG, with a scale at its side and the times below.
struct Plot {
    enum Unit {
        /// Events per second.
        case rate
        /// Microseconds.
        case time
    }

    /// One value, at a time in milliseconds since 1970.
    struct Point {
        var at: Int64
        var value: Double?
    }

    /// The time that a plot shows, in milliseconds.
    static let window: Int64 = 600_000
    private static let (width, bottom, top) = (240.0, 44.0, 4.0)

    /// The values, the oldest first; unknown ones have no point.
    var points: [Point]
    /// The right end, in milliseconds since 1970.
    var now: Int64
    var unit: Unit
    /// A description for screen readers.
    var label: String

    func write(to page: inout HTMLText) {
        let shown = points.compactMap { point -> (age: Int64, value: Double)? in
            guard let value = point.value, value.isFinite else { return nil }
            let age = max(0, now.saturatingSubtract(point.at))
            return age <= Self.window ? (age, value) : nil
        }
        let limit = Self.scale(upTo: shown.map(\.value).max() ?? 0, unit)
        page.markup("<div class=\"plot\"><div class=\"scale\">")
        for share in [1, 0.5, 0] { page.element("<span>", text(limit * share), "</span>") }
        page.markup("</div><svg viewBox=\"0 0 240 48\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"")
        page.escaped(label)
        page.markup("\"><path class=\"grid\" d=\"M0 4H240M0 24H240M0 44H240\"/>")
        let places = shown.map { point in
            let x = Self.width - Double(point.age) / Double(Self.window) * Self.width
            let y = Self.bottom - max(0, point.value) / limit * (Self.bottom - Self.top)
            return "\(Self.rounded(x)) \(Self.rounded(y))"
        }
        if !places.isEmpty {
            page.element("<path class=\"line\" d=\"", "M" + places.joined(separator: "L"), "\"/>")
            // Lines of zero length, whose round ends are visible as points.
            page.element("<path class=\"dots\" d=\"", places.map { "M\($0)h0" }.joined(), "\"/>")
        }
        page.markup("</svg><div class=\"span\"><span>10 min ago</span><span>now</span></div></div>")
    }

    /// Rounds `most` up to 1, 2 or 5 × 10ⁿ, so that half of it is a round number as well.
    static func scale(upTo most: Double, _ unit: Unit) -> Double {
        var step =
            switch unit {
            case .rate: 1.0
            case .time: 100.0
            }
        var factors = [2, 2.5, 2]
        while step < most, step < 1e15 {
            step *= factors[0]
            factors.append(factors.removeFirst())
        }
        return step
    }

    private func text(_ value: Double) -> String {
        switch unit {
        case .rate: readableRate(value)
        case .time: value == 0 ? "0" : readableTime(microseconds: UInt64(exactly: value.rounded()) ?? .max)
        }
    }

    private static func rounded(_ number: Double) -> Double { (number * 10).rounded() / 10 }
}
