// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Templates of the values that a session puts into targets and bodies; see `RequestInjections`.
package struct InjectionTemplates: Sendable, Hashable {
    /// Value for a member of a body.
    package struct Member: Sendable, Hashable {
        /// Place of the member.
        package var pointer: JSONPointer
        /// Template of its value.
        package var value: TextTemplate
    }

    /// Maximum number of parameters, and of members.
    package static let limit = 16

    /// Parameters of the query.
    package var query: [NamedTemplate] = []
    /// Path put in front of the request's.
    package var path: TextTemplate?
    /// Members of bodies.
    package var body: [Member] = []
    /// True if pages of the response have the values replaced.
    package var cleansPages = false

    /// Creates no templates.
    package init() {}

    /// True if nothing is put anywhere.
    package var isEmpty: Bool { query.isEmpty && path == nil && body.isEmpty }

    private var templates: [TextTemplate] { query.map(\.value) + [path].compactMap(\.self) + body.map(\.value) }

    /// Fields of the credential in the templates.
    var fieldNames: Set<String> { templates.reduce(into: []) { $0.formUnion($1.fieldNames) } }

    /// Returns true if both have a value for one place.
    func conflicts(with other: InjectionTemplates) -> Bool {
        path != nil && other.path != nil
            || query.contains { own in other.query.contains { $0.name == own.name } }
            || body.contains { own in other.body.contains { $0.pointer.overlaps(own.pointer) } }
    }

    /// Adds the templates to the terms of a login.
    func add(to terms: inout LoginTerms) {
        terms.add("inject-query", query.map { ($0.name, $0.value.source) })
        terms.add("inject-path", path?.source)
        terms.add("inject-body", body.map { ($0.pointer.source, $0.value.source) })
        if cleansPages { terms.add("inject-clean", "pages") }
    }

    // MARK: Rendering

    /// Fields of a credential that are not secret: a text that contains them is not changed.
    private static let publicFields: Set<String> = ["client-id", "principal", "username"]

    /// Returns the values made of `credential`; nil if nothing is put anywhere.
    func render(_ credential: Credential) async throws(TemplateError) -> RequestInjections? {
        guard !isEmpty else { return nil }
        var secrets: [Secret] = []
        var parameters: [RequestInjections.Parameter] = []
        for template in query {
            let value = Secret.joining(try await Self.parts(template.value, credential, &secrets))
            parameters.append(.init(name: Array(template.name.utf8), value: value))
        }
        var prefix: Secret?
        if let path { prefix = try await Self.prefix(path, credential, &secrets) }
        var members: [BodyMember] = []
        for member in body {
            let value = Secret.joining(try await Self.parts(member.value, credential, &secrets))
            // JSON is text: invalid UTF-8 would silently become another value.
            guard String(validating: value.revealBytes(), as: UTF8.self) != nil else {
                let field = member.value.fieldNames.sorted().joined(separator: ", ")
                throw .fieldNotText(field: field, credential: credential.name)
            }
            members.append(BodyMember(names: member.pointer.names, value: value))
        }
        return RequestInjections(
            parameters: parameters, path: prefix, members: members, secrets: secrets, cleansPages: cleansPages)
    }

    private static func parts(
        _ template: TextTemplate, _ credential: Credential, _ secrets: inout [Secret]
    ) async throws(TemplateError) -> [Secret] {
        var values: [Secret] = []
        for part in template.parts {
            let value = try await TextTemplate.value(of: part, credential, { _ in nil })
            values.append(value)
            switch part {
            case .literal: continue
            case .field(let name) where publicFields.contains(name): continue
            default: secrets.append(value)
            }
        }
        return values
    }

    /// Returns the encoded path, without a slash at its end.
    private static func prefix(
        _ template: TextTemplate, _ credential: Credential, _ secrets: inout [Secret]
    ) async throws(TemplateError) -> Secret {
        var path = SecretBuilder()
        for (part, value) in zip(template.parts, try await parts(template, credential, &secrets)) {
            if case .literal = part {
                path.append(value)
                continue
            }
            guard value.withBytes(isPathValue) else {
                throw .fieldUnfitForPath(
                    field: template.fieldNames.sorted().joined(separator: ", "), credential: credential.name)
            }
            PercentCoding.append(value, to: &path, keeping: PercentCoding.isPlainInPath)
        }
        return path.withBytes { bytes in
            let isEnded = bytes.count > 0 && bytes[bytes.count - 1] == UInt8(ascii: "/")
            var whole = SecretBuilder(capacity: bytes.count)
            whole.append(bytes.extracting(0..<(isEnded ? bytes.count - 1 : bytes.count)))
            return whole.finish()
        }
    }

    /// Returns true if a value is part of a segment and cannot become another path: some servers decode a path before they
    /// look for segments.
    private static func isPathValue(_ value: Span<UInt8>) -> Bool {
        for index in value.indices where value[index] < 0x20 || value[index] == 0x7F { return false }
        return !value.isEmpty && !PercentCoding.hasDotSegment(value)
    }
}
