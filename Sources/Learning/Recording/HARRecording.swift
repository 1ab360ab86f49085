// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// A browser's recording of requests and responses (HTTP Archive 1.2). Values of secrets in it are never printed.
package struct HARRecording: Sendable {
    /// The largest size of a file in bytes, and the largest number of exchanges.
    package static let sizeLimit = 32 * 1024 * 1024, entryLimit = 10_000

    /// Reason why a file cannot be used.
    package enum Fault: Error, Sendable, Equatable {
        /// No entry has a usable request.
        case empty
        /// The JSON is invalid, has an object with a repeated name, or exceeds a limit.
        case invalidJSON
        /// The JSON is not an HTTP Archive.
        case notAnArchive
        /// The file is too large.
        case tooLarge
    }

    /// A field of a request or a response.
    package struct Field: Sendable, Equatable {
        /// The name in lower case.
        package let name: String
        /// The value.
        package let value: String
    }

    /// A request and its response.
    package struct Entry: Sendable {
        /// The method.
        package let method: String
        /// The address.
        package let url: WebURL
        /// The request's fields in order.
        package let fields: [Field]
        /// The request's body; may be empty.
        package let body: RecordedBody
        /// The status; 0 without a response.
        package let status: Int
        /// The response's fields in order.
        package let responseFields: [Field]
        /// The response's decoded body, at most the examined part of it.
        package let responseBody: [UInt8]

        /// Returns the first value of a field of the request.
        package func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        /// Returns the media type of the response, in lower case.
        package var responseType: String {
            let value = responseFields.first { $0.name == "content-type" }?.value ?? ""
            return value.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        }
    }

    /// The exchanges in the order of the file. Those with another scheme than HTTP are left out.
    package let entries: [Entry]

    /// Parses a file. Any bytes are accepted.
    package init(parsing bytes: [UInt8]) throws(Fault) {
        guard bytes.count <= Self.sizeLimit else { throw .tooLarge }
        guard let json = JSONValue(parsing: bytes, within: .recording) else { throw .invalidJSON }
        guard case .array(let values)? = json["log"]?["entries"] else { throw .notAnArchive }
        entries = values.prefix(Self.entryLimit).compactMap(Entry.init)
        guard !entries.isEmpty else { throw .empty }
    }
}

extension HARRecording.Fault: CustomStringConvertible {
    /// The reason, and the remedy.
    package var description: String {
        switch self {
        case .empty: "it has no HTTP request; record the login with the browser's network tools open"
        case .invalidJSON:
            "it is not valid JSON, repeats a name in an object, or has more than 2,000,000 values; save it again"
        case .notAnArchive: "it is not an HTTP Archive: it has no list log.entries"
        case .tooLarge: "it is larger than 32 MiB; record the login alone"
        }
    }
}

extension HARRecording.Entry {
    fileprivate init?(_ value: JSONValue) {
        guard let request = value["request"], let method = request["method"]?.stringValue,
            let url = request["url"]?.stringValue.flatMap({ try? WebURL(reading: $0.utf8) })
        else { return nil }
        self.method = method.uppercased()
        self.url = url
        fields = Self.fields(of: request)
        body = RecordedBody(request["postData"])
        let response = value["response"]
        status = response?["status"]?.integerValue.flatMap { (100...599).contains($0) ? Int($0) : nil } ?? 0
        responseFields = response.map(Self.fields) ?? []
        let content = response?["content"]
        let text = content?["text"]?.stringValue ?? ""
        let isEncoded = content?["encoding"]?.stringValue?.lowercased() == "base64"
        let decoded = isEncoded ? Base64.decode(text) ?? [] : Array(text.utf8)
        responseBody = Array(decoded.prefix(ExaminedResponse.bodyLimit))
    }

    private static func fields(of message: JSONValue) -> [HARRecording.Field] {
        guard case .array(let values)? = message["headers"] else { return [] }
        return values.prefix(256).compactMap { field in
            guard let name = field["name"]?.stringValue, let value = field["value"]?.stringValue else { return nil }
            return HARRecording.Field(name: name.lowercased(), value: value)
        }
    }
}
