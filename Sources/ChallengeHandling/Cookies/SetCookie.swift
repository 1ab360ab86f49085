// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// What one `Set-Cookie` line says (RFC 6265 section 5.2).
struct SetCookie {
    let name: String
    let value: Secret
    /// Without its leading dot, in lower case; `nil` where none is written.
    private(set) var domain: String?
    /// `nil` where none is written, or one that is none.
    private(set) var path: String?
    private(set) var isSecure = false
    /// `Max-Age` over `Expires`, in milliseconds since 1970; `nil` for the end of the session.
    private(set) var expiresAt: Int64?

    /// Longer lines are not looked at, nor are longer attributes (RFC 6265bis section 5.6).
    private static let limit = 16384
    private static let attributeLimit = 1024
    /// RFC 6265bis section 5.5: no cookie lives longer than 400 days.
    private static let longestAge: Int64 = 400 * 86400

    /// Parses `text`; `nil` where it sets nothing: no name, no `=`, a control sign, or too much of it.
    init?(_ text: String, now: Int64) {
        let bytes = text.utf8
        guard bytes.count <= Self.limit, bytes.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            return nil
        }
        let parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let (name, value) = parts.first.flatMap(Self.pair), let value, !name.isEmpty,
            name.utf8.count + value.utf8.count <= CookieJar.sizeLimit
        else { return nil }
        self.name = String(name)
        self.value = Secret(String(value))
        var expires: Int64?
        var maximumAge: Int64?
        for part in parts.dropFirst() {
            guard let (name, value) = Self.pair(part), (value?.utf8.count ?? 0) <= Self.attributeLimit else { continue }
            // Of an attribute written twice the last one counts (section 5.3).
            switch name.lowercased() {
            case "domain": domain = Self.domain(value ?? "") ?? domain
            case "expires": expires = value.flatMap { CookieDate.moment(String($0)) } ?? expires
            case "max-age": maximumAge = value.flatMap { Self.age($0, now: now) } ?? maximumAge
            case "path": path = value.flatMap { $0.utf8.first == UInt8(ascii: "/") ? String($0) : nil }
            case "secure": isSecure = true
            default: continue
            }
        }
        expiresAt = maximumAge ?? expires
    }

    /// The name in `text`, also where it is not allowed to set anything; `nil` where there is none, or no `=`.
    static func name(in text: String) -> String? {
        guard let (name, value) = pair(text.utf8.prefix { $0 != UInt8(ascii: ";") }), value != nil, !name.isEmpty else {
            return nil
        }
        return String(name)
    }

    /// Name and value around the first `=`, without white space around them; no value where there is no `=`.
    private static func pair(_ part: Substring.UTF8View) -> (name: Substring, value: Substring?)? {
        let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = pair.first else { return nil }
        return (trimmed(Substring(name)), pair.count == 2 ? trimmed(Substring(pair[1])) : nil)
    }

    private static func trimmed(_ text: Substring) -> Substring {
        // Of bytes: for a `Character` a blank with an accent on it is no blank.
        var bytes = text.utf8
        while bytes.first == 0x20 || bytes.first == 0x09 { bytes.removeFirst() }
        while bytes.last == 0x20 || bytes.last == 0x09 { bytes.removeLast() }
        return Substring(bytes)
    }

    /// Section 5.2.3. A dot at the end makes no other host.
    private static func domain(_ value: Substring) -> String? {
        var value = value.hasPrefix(".") ? value.dropFirst() : value
        if value.hasSuffix(".") { value = value.dropLast() }
        return value.isEmpty ? nil : value.lowercased()
    }

    /// Section 5.2.2: zero and less is the past.
    private static func age(_ value: Substring, now: Int64) -> Int64? {
        let digits = value.hasPrefix("-") ? value.dropFirst() : value
        guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        let seconds = value.hasPrefix("-") ? 0 : min(Int64(digits) ?? .max, longestAge)
        if seconds == 0 { return .min }
        let end = now.addingReportingOverflow(seconds * 1000)
        return end.overflow ? nil : end.partialValue
    }
}
