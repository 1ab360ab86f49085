// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

extension HTMLPage.Input {
    private static let mailSigns = Set("!#$%&'*+/=?^_`{|}~-.".utf8)

    /// Returns the reason why a browser does not send the form with this value, as far as it is known; `nil` if it sends the form
    /// (WHATWG HTML §4.10.20.2).
    func invalidity(of value: String) -> String? {
        guard !value.isEmpty else { return nil }
        switch type {
        case "email": return Self.isMailAddress(value) ? nil : "which takes a mail address only"
        case "url": return Self.isAddress(value) ? nil : "which takes an address only"
        case "number":
            guard let number = Double(value) else { return "which takes a number only" }
            let isWithin = minimum.map { $0 <= number } ?? true && maximum.map { number <= $0 } ?? true
            return isWithin ? nil : "whose number is not within its limits"
        default: return nil
        }
    }

    /// Returns true for an address that browsers accept and leave unchanged.
    private static func isMailAddress(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty,
            parts[0].allSatisfy({ $0.isAlphanumeric || mailSigns.contains($0) })
        else { return false }
        return parts[1].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.count) && label.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "-") }
                && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
        }
    }

    /// Returns true for a text that certainly is an absolute address.
    private static func isAddress(_ text: String) -> Bool {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), let first = text.utf8.first, first.isAlphanumeric
        else {
            return false
        }
        let scheme = text.utf8[..<colon]
        guard scheme.allSatisfy({ $0.isAlphanumeric || "+-.".utf8.contains($0) }) else { return false }
        guard ["http", "https"].contains(String(Substring(scheme)).lowercased()) else { return true }
        let host = text.utf8[colon...].dropFirst().drop { $0 == UInt8(ascii: "/") }.prefix { !"/?#:".utf8.contains($0) }
        return !host.isEmpty && host.allSatisfy { $0.isAlphanumeric || "-.".utf8.contains($0) }
    }
}
