// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// One parsed `Set-Cookie` line (RFC 6265bis §5.6), as browsers parse it.
///
/// Name and value are bytes that go back as they came: with quotation marks, and in whatever encoding.
struct SetCookie {
    /// The name; empty for a line without `=`, or with nothing before it.
    let name: CookieName
    let value: Secret
    /// The domain without its leading dot, in lower case; `nil` if missing.
    private(set) var domain: String?
    /// The path; `nil` if missing or invalid.
    private(set) var path: String?
    private(set) var isSecure = false
    /// The attribute `SameSite`; the last of several counts, even if its value is unknown.
    private(set) var sameSite = SameSite.unset
    /// The expiry by `Max-Age`, else by `Expires`, in milliseconds since 1970. `nil` for the end of the session.
    private(set) var expiresAt: Int64?

    /// Size limits of a line and of an attribute (RFC 6265bis §5.6). Longer ones are ignored.
    private static let limit = 16384
    private static let attributeLimit = 1024
    /// The maximum lifetime of 400 days (RFC 6265bis §5.5).
    private static let longestAge: Int64 = 400 * 86400

    /// Parses a line; `nil` if no cookie is set: neither name nor value, a control character, or too long.
    init?(_ bytes: some BidirectionalCollection<UInt8>, now: Int64) {
        let bytes = Array(bytes)
        guard bytes.count <= Self.limit, bytes.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            return nil
        }
        let parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let (name, value) = parts.first.map(Self.nameAndValue), !name.isEmpty || !value.isEmpty,
            name.utf8.count + value.count <= CookieJar.sizeLimit
        else { return nil }
        // Browsers refuse these: a tab within, and a value without a name that would read as a name and a value.
        guard !name.utf8.contains(0x09), !value.contains(0x09), !name.isEmpty || !value.contains(UInt8(ascii: "="))
        else { return nil }
        self.name = name
        self.value = Secret(value)
        var expires: Int64?
        var maximumAge: Int64?
        for part in parts.dropFirst() {
            let (name, bytes) = Self.pair(part)
            guard (bytes?.count ?? 0) <= Self.attributeLimit else { continue }
            let value = String(decoding: bytes ?? [], as: UTF8.self)
            // The last of repeated attributes counts (RFC 6265 §5.3).
            switch String(decoding: name, as: UTF8.self).lowercased() {
            case "domain": domain = Self.domain(value[...])
            case "expires": expires = CookieDate.moment(value) ?? expires
            case "max-age": maximumAge = Self.age(value[...], now: now)
            case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : nil
            case "samesite": sameSite = SameSite(value[...])
            case "secure": isSecure = true
            default: continue
            }
        }
        expiresAt = maximumAge ?? expires
    }

    /// Parses the text of a line.
    init?(_ text: String, now: Int64) { self.init(Array(text.utf8), now: now) }

    /// Returns the name in a line, even if the line may not set anything.
    static func name(in line: some Collection<UInt8>) -> CookieName {
        nameAndValue(Array(line.prefix { $0 != UInt8(ascii: ";") })[...]).name
    }

    /// Returns name and value of the first part. Without `=` all of it is the value (RFC 6265bis §5.6, step 3).
    private static func nameAndValue(_ part: ArraySlice<UInt8>) -> (name: CookieName, value: ArraySlice<UInt8>) {
        let (name, value) = pair(part)
        return value.map { (CookieName(name), $0) } ?? (CookieName([]), name)
    }

    /// Returns name and value around the first `=`, trimmed; no value without `=`.
    private static func pair(_ part: ArraySlice<UInt8>) -> (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>?) {
        let sign = part.firstIndex(of: UInt8(ascii: "="))
        return (part[..<(sign ?? part.endIndex)].trimmed(\.isBlank), sign.map { part[($0 + 1)...].trimmed(\.isBlank) })
    }

    /// Returns the domain in `value` (RFC 6265 §5.2.3). A trailing dot is ignored.
    private static func domain(_ value: Substring) -> String? {
        var value = value.hasPrefix(".") ? value.dropFirst() : value
        if value.hasSuffix(".") { value = value.dropLast() }
        return value.isEmpty ? nil : value.lowercased()
    }

    /// Returns the expiry after an age (RFC 6265 §5.2.2). Zero and negative ages are in the past.
    private static func age(_ value: Substring, now: Int64) -> Int64? {
        let digits = value.hasPrefix("-") ? value.dropFirst() : value
        guard !digits.isEmpty, digits.utf8.allSatisfy(\.isDigit) else { return nil }
        let seconds = value.hasPrefix("-") ? 0 : min(Int64(digits) ?? .max, longestAge)
        if seconds == 0 { return .min }
        let end = now.addingReportingOverflow(seconds * 1000)
        return end.overflow ? nil : end.partialValue
    }
}

/// Parser for `Expires`, more lenient than that of an HTTP-date (RFC 6265 §5.1.1).
enum CookieDate {
    /// Returns the time in milliseconds since 1970; `nil` if the text is not a date.
    static func moment(_ text: String) -> Int64? {
        var time: (hours: Int64, minutes: Int64, seconds: Int64)?
        var day: Int64?
        var month: Int64?
        var year: Int64?
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let found = Self.time(token) {
                time = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = Self.month(token) {
                month = found
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 }
        if (0...69).contains(year) { year += 2000 }
        guard year >= 1601, time.hours <= 23, time.minutes <= 59, time.seconds <= 59 else { return nil }
        return Moment.at(
            year: year, month: month, day: day, hours: time.hours, minutes: time.minutes, seconds: time.seconds)
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// Returns the leading digits of the token, if their number is in `digits`.
    private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int64? {
        let leading = token.prefix(while: \.isDigit)
        return digits.contains(leading.count) ? Int64(Substring(leading)) : nil
    }

    private static func time(_ token: Substring.UTF8View) -> (hours: Int64, minutes: Int64, seconds: Int64)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].count <= 2, parts[1].count <= 2, let hours = number(parts[0], digits: 1...2),
            let minutes = number(parts[1], digits: 1...2), let seconds = number(parts[2], digits: 1...2),
            parts[0].count == digitCount(parts[0]), parts[1].count == digitCount(parts[1])
        else { return nil }
        return (hours, minutes, seconds)
    }

    private static func digitCount(_ text: Substring.UTF8View) -> Int { text.prefix(while: \.isDigit).count }

    private static func month(_ token: Substring.UTF8View) -> Int64? {
        let name = Substring(token.prefix(3)).lowercased()
        return CivilDate.monthNames.firstIndex { $0.lowercased() == name }.map { Int64($0) + 1 }
    }
}
