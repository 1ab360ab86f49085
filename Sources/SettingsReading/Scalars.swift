// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

extension Value {
    /// Returns one of the raw values of `Choice`.
    package func choice<Choice: RawRepresentable<String> & CaseIterable>(_ type: Choice.Type) -> Choice? {
        guard let text = text() else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        let names = Choice.allCases.map(\.rawValue)
        report("\"\(text)\" is not one of \(names.joined(separator: ", "))\(didYouMean(text, among: names))")
        return nil
    }

    /// Returns `true` or `false`.
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

    /// Returns a whole number within `range`.
    package func integer(in range: ClosedRange<Int>) -> Int? {
        guard let text = text() else { return nil }
        guard let number = Int(text), range.contains(number) else {
            report("\"\(text)\" is not a whole number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }

    /// Returns a duration, such as `500ms`, `10s`, `5m` or `2h`: more than zero, at most a year.
    package func duration() -> Duration? {
        guard let text = text() else { return nil }
        for unit in DurationText.units.reversed() where text.hasSuffix(unit.suffix) {
            let digits = text.dropLast(unit.suffix.count)
            guard isNumber(digits), let count = Int64(digits) else { continue }
            let (total, overflow) = count.multipliedReportingOverflow(by: unit.milliseconds)
            guard total > 0, !overflow, total <= 365 * 24 * 3_600_000 else {
                report("\"\(text)\" is not between 1ms and a year")
                return nil
            }
            return .milliseconds(total)
        }
        report("\"\(text)\" is not a duration (use 500ms, 10s, 5m, 2h)")
        return nil
    }

    /// Returns a size in bytes, such as `512B`, `64KiB`, `16MiB` or `1GiB`: at most 1 TiB.
    package func size() -> Int? {
        guard let text = text() else { return nil }
        for (suffix, bytes) in SizeText.units where text.hasSuffix(suffix) {
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
        report("\"\(text)\" is not a valid size (use 64KiB, 16MiB)")
        return nil
    }

    /// Returns a name for other parts of the file, logs and commands.
    ///
    /// A name has letters, digits, `-`, `_` and `.`, at most 64.
    package func name() -> String? {
        guard let text = text() else { return nil }
        guard let reason = nameFault(text) else { return text }
        report(reason)
        return nil
    }

    /// Returns the name of an upstream of this file.
    package func upstreamName() -> String? {
        guard let text = text() else { return nil }
        guard reading.knownUpstreams.contains(text) else {
            report("there is no upstream \"\(text)\"\(didYouMean(text, among: reading.upstreamNames))")
            return nil
        }
        return text
    }

    /// Returns the name of one of the program's own handlers.
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

    /// Returns the absolute path of a file.
    package func filePath() -> String? {
        guard let text = word() else { return nil }
        guard text.hasPrefix("/") else {
            report("\"\(text)\" is not an absolute path: it must begin with /")
            return nil
        }
        return text
    }

    /// Returns the words of a list, or of one text with spaces.
    package func words() -> [String] {
        listOrOne().flatMap { $0.text()?.split(separator: " ").map(String.init) ?? [] }
    }
}

private func isNumber(_ digits: Substring) -> Bool {
    !digits.isEmpty && digits.utf8.allSatisfy(\.isDigit)
}
