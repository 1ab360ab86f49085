// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension Value {
    /// One of the raw values of `Choice`.
    package func choice<Choice: RawRepresentable<String> & CaseIterable>(_ type: Choice.Type) -> Choice? {
        guard let text = text() else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        let names = Choice.allCases.map(\.rawValue)
        report("\"\(text)\" is none of \(names.joined(separator: ", "))\(didYouMean(text, among: names))")
        return nil
    }

    /// `true` or `false`.
    package func flag() -> Bool? {
        switch text() {
        case "true"?: return true
        case "false"?: return false
        case nil: return nil
        case let text?:
            report("\"\(text)\" is neither true nor false")
            return nil
        }
    }

    /// A whole number within `range`.
    package func integer(in range: ClosedRange<Int>) -> Int? {
        guard let text = text() else { return nil }
        guard let number = Int(text), range.contains(number) else {
            report("\"\(text)\" is no whole number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }

    /// A length of time: `500ms 10s 5m 2h`; more than none, at most a year.
    package func duration() -> Duration? {
        guard let text = text() else { return nil }
        let units: [(suffix: String, milliseconds: Int64)] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)]
        for unit in units where text.hasSuffix(unit.suffix) {
            let digits = text.dropLast(unit.suffix.count)
            guard isNumber(digits), let count = Int64(digits) else { continue }
            let (total, overflow) = count.multipliedReportingOverflow(by: unit.milliseconds)
            guard total > 0, !overflow, total <= 365 * 24 * 3_600_000 else {
                report("\"\(text)\" is not between 1ms and a year")
                return nil
            }
            return .milliseconds(total)
        }
        report("\"\(text)\" is no duration; write a whole number and ms, s, m or h: 500ms, 10s, 5m, 2h")
        return nil
    }

    /// A size in bytes: `64KiB 16MiB`, also `512B` and `1GiB`; at most 1 TiB.
    package func size() -> Int? {
        guard let text = text() else { return nil }
        let units = [("KiB", 1024), ("MiB", 1_048_576), ("GiB", 1_073_741_824), ("B", 1)]
        for (suffix, bytes) in units where text.hasSuffix(suffix) {
            let digits = text.dropLast(suffix.count)
            guard isNumber(digits), let count = Int(digits) else { continue }
            let (total, overflow) = count.multipliedReportingOverflow(by: bytes)
            guard !overflow, total <= 1_099_511_627_776 else {
                report("\"\(text)\" is more than 1024GiB")
                return nil
            }
            return total
        }
        if text == "0" { return 0 }
        report("\"\(text)\" is no size; write a whole number and B, KiB, MiB or GiB: 64KiB, 16MiB")
        return nil
    }

    /// A name that other parts of the file, logs and commands use: letters, digits, `-`, `_` and `.`, at most 64.
    package func name() -> String? {
        guard let text = text() else { return nil }
        guard let reason = nameFault(text) else { return text }
        report(reason)
        return nil
    }

    /// The name of an upstream of this file.
    package func upstreamName() -> String? {
        guard let text = text() else { return nil }
        guard reading.upstreamNames.contains(text) else {
            report("there is no upstream \"\(text)\"\(didYouMean(text, among: reading.upstreamNames))")
            return nil
        }
        return text
    }

    /// The name of a handler that the program brings along.
    package func handlerName() -> String? {
        guard let text = text() else { return nil }
        guard reading.handlerNames.contains(text) else {
            let known = reading.handlerNames.sorted()
            report(
                known.isEmpty
                    ? "this program has no handlers of its own: build one that calls Countersign.main(handlers:)"
                    : "there is no handler \"\(text)\" in this program\(didYouMean(text, among: known))")
            return nil
        }
        return text
    }

    /// An absolute path of a file.
    package func filePath() -> String? {
        guard let text = word() else { return nil }
        guard text.hasPrefix("/") else {
            report("\"\(text)\" is no absolute path: it must begin with /")
            return nil
        }
        return text
    }

    /// Words in a list, or separated by spaces in one text.
    package func words() -> [String] {
        listOrOne().flatMap { $0.text()?.split(separator: " ").map(String.init) ?? [] }
    }
}

/// The fault of a name; `nil` if it has none.
package func nameFault(_ name: String) -> String? {
    let isLegal = name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || [0x2D, 0x2E, 0x5F].contains(byte)
    }
    guard isLegal, let first = name.utf8.first, ![0x2D, 0x2E].contains(first), name.utf8.count <= 64 else {
        return "\"\(name)\" is no name: it is made of letters, digits, -, _ and ., begins with none of - and ., and is "
            + "at most 64 long"
    }
    return nil
}

private func isNumber(_ digits: Substring) -> Bool {
    !digits.isEmpty && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
}
