// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// The value of an input as a browser keeps it (WHATWG HTML §4.10.5.1, value sanitization).
struct InputValue {
    private(set) var bytes: [UInt8] = []
    /// The reason if the value is not known.
    private(set) var problem: String?

    init(of type: String, _ attributes: HTMLAttributes) {
        let written = attributes.bytes("value")
        bytes = written ?? []
        let text = String(decoding: bytes, as: UTF8.self)
        switch type {
        case "checkbox", "radio": bytes = written ?? Array("on".utf8)
        case "color":
            if !text.isEmpty, !Self.isColor(text) { problem = "has a color that is not read" }
            bytes = Array((text.isEmpty ? "#000000" : text.lowercased()).utf8)
        case "file", "image": bytes = []
        case "text", "search", "tel", "password": bytes.removeAll { $0 == 0x0A || $0 == 0x0D }
        case "email", "url":
            bytes.removeAll { $0 == 0x0A || $0 == 0x0D }
            bytes = Array(bytes.trimmed(\.isASCIIWhitespace))
            if type == "email", attributes.has("multiple") {
                let parts = bytes.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
                bytes = Array(parts.map { $0.trimmed(\.isASCIIWhitespace) }.joined(separator: [UInt8(ascii: ",")]))
            }
        case "number": if !Self.isNumber(text) { bytes = [] }
        case "range": setRange(text, attributes)
        case "date", "month", "week", "time", "datetime-local":
            if !Self.isDateOrTime(text, type) { bytes = [] }
        // What browsers write on a button without words of its own.
        case "submit": bytes = written ?? Array("Submit".utf8)
        default: break
        }
    }

    /// Returns a number that is not negative (WHATWG HTML §2.3.4.2); digits may be followed by anything.
    static func integer(_ text: String) -> Int? {
        var bytes = text.utf8.drop(while: \.isASCIIWhitespace)
        if bytes.first == UInt8(ascii: "+") { bytes = bytes.dropFirst() }
        let digits = bytes.prefix { $0.isDigit }
        guard !digits.isEmpty else { return nil }
        return Int(Substring(digits)) ?? Int.max
    }

    private mutating func setRange(_ text: String, _ attributes: HTMLAttributes) {
        func whole(_ name: String) -> Int? { attributes[name].flatMap { Int($0) } }
        let isSimple = ["min", "max", "step"].allSatisfy { !attributes.has($0) || whole($0) != nil }
        let least = whole("min") ?? 0
        let most = max(least, whole("max") ?? 100)
        let step = whole("step").flatMap { $0 > 0 ? $0 : nil } ?? 1
        let isNear = [least, most, step].allSatisfy { (-1_000_000...1_000_000).contains($0) }
        guard isSimple, isNear, !Self.isNumber(text) || Int(text) != nil else {
            problem = "has a range that is not read"
            return
        }
        let value = min(max(Int(text) ?? least + (most - least) / 2, least), most)
        guard (value - least).isMultiple(of: step), Self.isNumber(text) || (most - least).isMultiple(of: 2) else {
            problem = "has a range that is not read"
            return
        }
        bytes = Array("\(value)".utf8)
    }

    private static func isColor(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count == 7 && bytes[0] == UInt8(ascii: "#")
            && bytes.dropFirst().allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }

    /// Returns true for a valid floating-point number (WHATWG HTML §2.3.4.3).
    private static func isNumber(_ text: String) -> Bool {
        var rest = Array(text.utf8)[...]
        func digits() -> Int {
            let count = rest.prefix { $0.isDigit }.count
            rest = rest.dropFirst(count)
            return count
        }
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let whole = digits()
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            guard digits() > 0 else { return false }
        } else if whole == 0 {
            return false
        }
        if let sign = rest.first, sign | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "-") || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
            guard digits() > 0 else { return false }
        }
        return rest.isEmpty
    }

    /// Returns true for a valid date or time in the form that browsers keep.
    private static func isDateOrTime(_ text: String, _ type: String) -> Bool {
        switch type {
        case "month": return isDateOrTime("\(text)-01", "date")
        case "datetime-local":
            let parts = text.split(separator: "T", omittingEmptySubsequences: false)
            return parts.count == 2 && isDateOrTime(String(parts[0]), "date") && isDateOrTime(String(parts[1]), "time")
        case "time":
            let parts = numbers(text, ":", [2, 2])
            return parts.map { $0[0] < 24 && $0[1] < 60 } ?? false
        case "week":
            let parts = numbers(text.replacing("-W", with: "-"), "-", [4, 2])
            return text.utf8.contains(UInt8(ascii: "W")) && parts.map { $0[0] > 0 && (1...52).contains($0[1]) } ?? false
        default:
            guard let parts = numbers(text, "-", [4, 2, 2]), parts[0] > 0, (1...12).contains(parts[1]) else {
                return false
            }
            let isLeap = parts[0].isMultiple(of: 4) && !parts[0].isMultiple(of: 100) || parts[0].isMultiple(of: 400)
            let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            return (1...days[parts[1] - 1]).contains(parts[2])
        }
    }

    private static func numbers(_ text: String, _ separator: Character, _ lengths: [Int]) -> [Int]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == lengths,
            parts.allSatisfy({ $0.utf8.allSatisfy { $0.isDigit } })
        else { return nil }
        return parts.map { Int($0) ?? 0 }
    }
}

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
