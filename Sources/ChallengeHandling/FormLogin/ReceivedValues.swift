// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Data that a server has sent so far in a login: its cookies, and its last response.
struct ReceivedValues {
    var cookies: CookieJar
    /// Address of the next request, whose cookies count.
    var url: WebURL
    /// Last response; nil before the first.
    var response: ExaminedResponse?
    /// Time in ms since 1970.
    var now: Int64

    /// Returns the value at `source`. Nil if it is missing, or not valid in a field or form.
    func value(_ source: ValueSource) -> Secret? {
        switch source {
        case .cookie(let name): carried(cookies.value(of: name, for: url, now: now)?.revealBytes())
        case .decodedCookie(let name):
            carried((cookies.value(of: name, for: url, now: now)?.revealBytes()).map(FormEncoding.percentDecoded))
        case .header(let name): carried(response?.fields[values: name].last.map { Array($0.utf8) })
        case .json(let pointer):
            carried(
                response?.body.flatMap { JSONValue(parsing: $0) }.flatMap(pointer.value).flatMap(\.scalarText).map {
                    Array($0.utf8)
                })
        case .page(let pattern): carried(response?.body.flatMap(pattern.firstGroup))
        }
    }

    /// Returns a value that a field can carry: printable ASCII, without blanks at its ends (RFC 9110 §5.5).
    private func carried(_ bytes: [UInt8]?) -> Secret? {
        guard let bytes, (1...TokenPlacement.longest).contains(bytes.count),
            bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }), bytes.first != 0x20, bytes.last != 0x20
        else { return nil }
        return Secret(bytes)
    }
}

extension JSONValue {
    /// The text of a string, or of a whole number.
    var scalarText: String? {
        switch self {
        case .string(let text): text
        case .integer(let number): String(number)
        default: nil
        }
    }
}
