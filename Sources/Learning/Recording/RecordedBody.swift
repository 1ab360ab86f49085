// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The body of a recorded request, as a login may send it.
package enum RecordedBody: Sendable, Equatable {
    /// A form: names and values in order.
    case form([Pair])
    /// A JSON text.
    case json(JSONValue)
    /// None.
    case none
    /// Any other type.
    case other

    /// A name and its value.
    package struct Pair: Sendable, Equatable {
        /// The name.
        package let name: String
        /// The value.
        package let value: String
    }

    private static let pairLimit = 256

    /// Reads `postData` of an entry.
    init(_ data: JSONValue?) {
        guard let data else {
            self = .none
            return
        }
        let type = MediaType(data["mimeType"]?.stringValue ?? "").essence
        let text = data["text"]?.stringValue ?? ""
        if type == "application/json" || type.hasSuffix("+json") || text.hasPrefix("{") {
            self = JSONValue(parsing: Array(text.utf8)).map(RecordedBody.json) ?? .other
        } else if type == FormEncoding.mediaType {
            self = .form(Self.pairs(data, text))
        } else {
            self = text.isEmpty && data["params"] == nil ? .none : .other
        }
    }

    /// The names and values in the top level of the body; values that are not text are left out.
    package var pairs: [Pair] {
        switch self {
        case .form(let pairs): pairs
        case .json(let value):
            (value.objectValue ?? [:]).sorted { $0.key < $1.key }.compactMap { name, value in
                value.stringValue.map { Pair(name: name, value: $0) }
            }
        case .none, .other: []
        }
    }

    private static func pairs(_ data: JSONValue, _ text: String) -> [Pair] {
        if !text.isEmpty {
            return text.utf8.split(separator: UInt8(ascii: "&")).prefix(pairLimit).map { part in
                let sign = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
                return Pair(name: decoded(part[..<sign]), value: decoded(part[sign...].dropFirst()))
            }
        }
        guard case .array(let values)? = data["params"] else { return [] }
        return values.prefix(pairLimit).compactMap { value in
            guard let name = value["name"]?.stringValue else { return nil }
            // Browsers write these either decoded or as they were sent.
            return Pair(name: decoded(name.utf8[...]), value: decoded((value["value"]?.stringValue ?? "").utf8[...]))
        }
    }

    private static func decoded(_ text: Substring.UTF8View) -> String {
        TextRuns.broken(String(decoding: FormEncoding.decodedBytes(text), as: UTF8.self))
    }
}
