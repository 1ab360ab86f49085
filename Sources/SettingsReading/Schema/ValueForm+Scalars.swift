// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

extension ValueForm where Content: RawRepresentable<String> & CaseIterable & SendableMetatype {
    /// One of the raw values of `Content`.
    package static var choice: ValueForm {
        let names = Content.allCases.map(\.rawValue)
        return ValueForm(
            names.map { "`\($0)`" }.joined(separator: ", "), choices: names, write: { .scalar($0.rawValue) },
            read: { $0.choice(Content.self) })
    }
}

extension ValueForm where Content == Bool {
    /// `true` or `false`.
    package static let flag = ValueForm("`true` or `false`", write: { .scalar($0 ? "true" : "false") }) { $0.flag() }
}

extension ValueForm where Content == Int {
    /// A whole number within `range`.
    package static func integer(in range: ClosedRange<Int>) -> ValueForm {
        ValueForm("\(range.lowerBound) to \(range.upperBound)", plural: "\(range.lowerBound) to \(range.upperBound)") {
            .scalar("\($0)")
        } read: {
            $0.integer(in: range)
        }
    }

    /// A size in bytes.
    package static let size = ValueForm("size", write: { .scalar(SizeText.text(of: $0)) }) { $0.size() }

    /// A size within `range`.
    package static func size(in range: ClosedRange<Int>) -> ValueForm {
        let words = "\(SizeText.text(of: range.lowerBound)) to \(SizeText.text(of: range.upperBound))"
        return ValueForm("size, \(words)", write: size.write) { value in
            guard let size = value.size() else { return nil }
            guard range.contains(size) else {
                value.report("must be from \(words)")
                return nil
            }
            return size
        }
    }
}

extension ValueForm where Content == Duration {
    /// A duration.
    package static let duration = ValueForm("duration", write: { .scalar(DurationText.text(of: $0)) }) {
        $0.duration()
    }

    /// A duration within `range`.
    package static func duration(in range: ClosedRange<Duration>) -> ValueForm {
        let words = "\(DurationText.text(of: range.lowerBound)) to \(DurationText.text(of: range.upperBound))"
        return ValueForm("duration, \(words)", write: duration.write) { value in
            guard let duration = value.duration() else { return nil }
            guard range.contains(duration) else {
                value.report("must be from \(words)")
                return nil
            }
            return duration
        }
    }
}

extension ValueForm where Content == Duration {
    /// A duration of at least `shortest`.
    package static func duration(atLeast shortest: Duration) -> ValueForm {
        let words = "at least \(DurationText.text(of: shortest))"
        return ValueForm("duration, \(words)", write: duration.write) { value in
            guard let duration = value.duration() else { return nil }
            guard duration >= shortest else {
                value.report("must be \(words)")
                return nil
            }
            return duration
        }
    }
}

extension ValueForm where Content == String {
    /// A name for other parts of the file, logs and commands.
    package static let name = ValueForm("name", write: { .scalar($0) }) { $0.name() }
    /// The name of an upstream of this file.
    package static let upstream = ValueForm("name of an upstream") { $0.upstreamName() }
    /// A text that is not empty.
    package static let word = ValueForm("text", plural: "texts", write: { .scalar($0) }) { $0.word() }
    /// A text, which may be empty.
    package static let text = ValueForm("text", plural: "texts", write: { .scalar($0, isPlain: false) }) { $0.text() }
    /// The absolute path of a file.
    package static let file = ValueForm("file") { $0.filePath() }
}

extension ValueForm where Content == [String] {
    /// Words in a list, or in one text with spaces.
    package static let words = ValueForm("words", write: { YAMLNode(list: $0.map { .scalar($0) }) }) { $0.words() }

    /// Absolute path of a program, and its arguments.
    package static let command = ValueForm("program and arguments") { value in
        let words = value.listOrOne()
        guard let program = words.first?.filePath() else {
            if words.isEmpty { value.report("does not name a program") }
            return nil
        }
        return [program] + words.dropFirst().compactMap { $0.text() }
    }
}

/// Text form of durations in the configuration.
package enum DurationText {
    /// Units in milliseconds, the largest first.
    static let units: [(suffix: String, milliseconds: Int64)] = [
        ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    /// Returns a duration in its largest whole unit. Parts of a millisecond are dropped.
    package static func text(of duration: Duration) -> String {
        let milliseconds = duration.milliseconds
        for unit in units where milliseconds.isMultiple(of: unit.milliseconds) && milliseconds != 0 {
            return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
        }
        return "\(milliseconds)ms"
    }
}

/// Text form of sizes in the configuration.
package enum SizeText {
    /// Units in bytes, the largest first.
    static let units = [("GiB", 1_073_741_824), ("MiB", 1_048_576), ("KiB", 1024), ("B", 1)]

    /// Returns a size in its largest whole unit.
    package static func text(of size: Int) -> String {
        for (suffix, bytes) in units where size != 0 && size.isMultiple(of: bytes) { return "\(size / bytes)\(suffix)" }
        return "0"
    }
}
