// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Admin

@Suite("The numbers and times of the status page")
struct ReadableTextTests {
    @Test(
        "times on the status page are in readable units",
        arguments: [
            (.min, "0 ms"), (-5, "0 ms"), (850, "850 ms"), (4_250, "4.2 s"), (4_050, "4 s"), (59_000, "59 s"),
            (600_000, "10 min"), (7_500_000, "2 h 5 min"), (7_200_000, "2 h"), (532_800_000, "6 days 4 h"),
            (518_400_000, "6 days"),
            (1_252_800_000, "15 days"), (1_209_576_000, "14 days"),
        ] as [(Int64, String)])
    func times(milliseconds: Int64, text: String) {
        #expect(readableTime(milliseconds: milliseconds) == text)
    }

    @Test(
        "durations of exchanges are in microseconds below 1 ms, then in milliseconds, then in seconds",
        arguments: [
            (0, "0 µs"), (512, "512 µs"), (1024, "1 ms"), (2500, "2.5 ms"), (8192, "8.1 ms"), (16_384, "16 ms"),
            (999_999, "999 ms"), (1_000_000, "1 s"), (8_388_608, "8.3 s"), (67_108_864, "67 s"),
            (.max, "18\u{202F}446\u{202F}744\u{202F}073\u{202F}709 s"),
        ] as [(UInt64, String)])
    func durations(microseconds: UInt64, text: String) {
        #expect(readableTime(microseconds: microseconds) == text)
    }

    @Test(
        "sizes are in bytes, kB, MB and so on",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567, "1.2 MB"), (28_361_040, "28 MB"),
            (999_999, "999 kB"), (3_000_000_000, "3 GB"), (.max, "18 EB"),
        ] as [(UInt64, String)])
    func sizes(bytes: UInt64, text: String) {
        #expect(readableSize(bytes: bytes) == text)
    }

    @Test(
        "rates have one decimal below 10, and none where it is a zero",
        arguments: [
            (0, "0"), (0.44, "0.4"), (7.5, "7.5"), (9.97, "10"), (1234.4, "1\u{202F}234"), (-1, "0"), (.nan, "0"),
            (.infinity, "1\u{202F}000\u{202F}000\u{202F}000\u{202F}000\u{202F}000"),
        ] as [(Double, String)])
    func rates(rate: Double, text: String) {
        #expect(readableRate(rate) == text)
    }

    @Test(
        "numbers on the status page are in groups of three digits",
        arguments: [(7, "7"), (1234, "1\u{202F}234"), (1_234_567, "1\u{202F}234\u{202F}567")] as [(UInt64, String)])
    func numbers(number: UInt64, text: String) {
        #expect(readableNumber(number) == text)
    }

    @Test("the age of a moment is at least zero")
    func ages() {
        #expect(readableAge(of: 40_000, now: 220_000) == "3 min ago")
        #expect(readableAge(of: .max, now: .min) == "0 ms ago")
        #expect(readableAge(of: .min, now: .max).hasSuffix(" days ago"))
    }
}

@Suite("The plots of the status page")
struct PlotTests {
    private func text(_ plot: Plot) -> String {
        var page = HTMLText()
        plot.write(to: &page)
        return page.text
    }

    @Test("a plot joins its points over gaps, has a scale, and says which time it shows")
    func joins() {
        let points: [Plot.Point] = [
            .init(at: 0, value: 0), .init(at: 150_000, value: 5), .init(at: 300_000, value: nil),
            .init(at: 600_000, value: 10),
        ]
        let text = text(Plot(points: points, now: 600_000, unit: .rate, label: "a < b"))
        #expect(text.contains("aria-label=\"a &lt; b\""))
        #expect(text.contains("class=\"line\" d=\"M0.0 44.0L60.0 24.0L240.0 4.0\""))
        #expect(text.contains("class=\"dots\" d=\"M0.0 44.0h0M60.0 24.0h0M240.0 4.0h0\""))
        #expect(text.contains("<span>10</span><span>5</span><span>0</span>"))
        #expect(text.contains("<span>10 min ago</span><span>now</span>"))
    }

    @Test("a plot has no points of before its window, and none of a number that is not finite")
    func window() {
        let points: [Plot.Point] = [.init(at: 0, value: 50), .init(at: 1, value: .nan), .init(at: 2, value: .infinity)]
        #expect(!text(Plot(points: points, now: 600_001, unit: .rate, label: "")).contains("class=\"line\""))
        #expect(!text(Plot(points: [], now: .min, unit: .time, label: "")).contains("class=\"line\""))
        #expect(text(Plot(points: [.init(at: 9, value: 2)], now: 0, unit: .rate, label: "")).contains("M240.0 4.0h0"))
    }

    @Test(
        "the scale of a plot ends at 1, 2 or 5 times a power of ten",
        arguments: [
            (0, 1, 100), (1, 1, 100), (1.1, 2, 100), (3, 5, 100), (5.1, 10, 100), (130, 200, 200),
            (16_384, 20_000, 20_000), (67_108_864, 100_000_000, 100_000_000),
        ] as [(Double, Double, Double)])
    func scale(most: Double, rate: Double, time: Double) {
        #expect(Plot.scale(upTo: most, .rate) == rate)
        #expect(Plot.scale(upTo: most, .time) == time)
    }

    @Test("the scale of times has units")
    func times() {
        let text = text(Plot(points: [.init(at: 0, value: 16_384)], now: 0, unit: .time, label: ""))
        #expect(text.contains("<span>20 ms</span><span>10 ms</span><span>0</span>"))
    }
}
