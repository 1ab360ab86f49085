// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Component of a request that a signature covers (RFC 9421 §2). Equal components differ at most in the order of parameters.
package struct SignedComponent: Sendable, Hashable {
    /// Reason why a component cannot be signed, as the end of a sentence.
    package struct Fault: Error, Equatable {
        /// The reason.
        package var reason: String
    }

    /// Name of a field in lower case, or of a derived component, which begins with `@`.
    package let name: String
    /// Name of the parameter of `@query-param`, percent-encoded (§2.2.8).
    package private(set) var parameter: String?
    /// Key of the one member of a dictionary that is signed (§2.1.2).
    package private(set) var member: String?
    /// True if the field is signed in its strict serialization (§2.1.1).
    package private(set) var isStrict = false
    /// True if each line of the field is signed as a byte sequence (§2.1.3).
    package private(set) var isBinary = false

    /// Derived components of requests (§2.2).
    static let derived: Set<String> = [
        "@authority", "@method", "@path", "@query", "@query-param", "@request-target", "@scheme", "@target-uri",
    ]
    /// Fields of the connection and of signatures, which are written after a signature is made.
    private static let late: Set<String> = [
        "connection", "content-length", "expect", "keep-alive", "proxy-connection", "signature", "signature-input",
        "te", "trailer", "transfer-encoding", "upgrade",
    ]
    /// Fields about the body, which requests without a body do not have.
    private static let ofBody: Set<String> = [
        "content-digest", "content-encoding", "content-language", "content-length", "content-location", "content-type",
        "repr-digest",
    ]

    /// Creates the component of a name without parameters.
    init(plain name: String) { self.name = name }

    /// Reads a component of the configuration: a name, or an item with parameters.
    package init(_ text: String) throws(Fault) {
        var text = text
        if !text.hasPrefix("\"") {
            let name = text.prefix { $0 != ";" }
            text = "\"\(name)\"\(text[name.endIndex...])"
        }
        guard let item = StructuredFieldParser.item(Array(text.utf8)) else {
            throw Fault(
                reason: "is neither a name nor a name in quotes with parameters, such as '\"@query-param\";name=\"a\"'")
        }
        try self.init(item)
    }

    /// Reads a component of `Accept-Signature` or of the configuration.
    package init(_ item: StructuredItem) throws(Fault) {
        guard case .string(let name) = item.value else { throw Fault(reason: "is not a name in quotes") }
        self.name = name
        let isDerived = name.hasPrefix("@")
        if isDerived {
            guard Self.derived.contains(name) else {
                throw Fault(
                    reason: name == "@status"
                        ? "belongs to responses" : "is not a derived component of a request (RFC 9421 §2.2)")
            }
        } else {
            guard name.utf8.isToken else { throw Fault(reason: "is not the name of a field") }
            guard name == name.lowercased() else { throw Fault(reason: "must be in lower case") }
        }
        for (key, value) in item.parameters.all {
            switch (key, value) {
            case ("name", .string(let text)) where name == "@query-param": parameter = text
            case ("bs", .boolean(true)) where !isDerived: isBinary = true
            case ("key", .string(let text)) where !isDerived: member = text
            case ("sf", .boolean(true)) where !isDerived: isStrict = true
            case ("req", _): throw Fault(reason: "has `req`, which is for responses")
            case ("tr", _): throw Fault(reason: "has `tr`, but trailers are not known before the request is sent")
            default: throw Fault(reason: "has a parameter `\(key)` that it cannot have")
            }
        }
        try check()
    }

    private func check() throws(Fault) {
        if name == "@query-param", parameter == nil { throw Fault(reason: "needs the parameter `name`") }
        if isBinary, isStrict || member != nil {
            throw Fault(reason: "has `bs` together with `sf` or `key`, which exclude each other")
        }
        if isStrict, member == nil, StructuredFields.kind(of: name) == nil {
            throw Fault(
                reason:
                    "has `sf`, but is not known to be a structured field: use `key`, `bs`, or the field as it is sent")
        }
    }

    /// True if the field is written after the signature is made.
    package var isLate: Bool { Self.late.contains(name) }

    /// True if the field describes a body.
    var isAboutBody: Bool { Self.ofBody.contains(name) }

    /// Component identifier as an item (§2).
    package var item: StructuredItem {
        var parameters = StructuredParameters()
        if isStrict { parameters["sf"] = .boolean(true) }
        if isBinary { parameters["bs"] = .boolean(true) }
        if let member { parameters["key"] = .string(member) }
        if let parameter { parameters["name"] = .string(parameter) }
        return StructuredItem(.string(name), parameters)
    }
}
