// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
package import SettingsReading

/// Settings of `inject`: values that are added to each request, without a challenge.
package struct InjectionSettings: ChallengeKind {
    /// Fields.
    package var fields: [InjectedTemplate]
    /// Values for queries, paths and bodies.
    package var templates: InjectionTemplates

    /// Creates settings; there is at least one field or value.
    package init(_ fields: [InjectedTemplate], _ templates: InjectionTemplates = InjectionTemplates()) {
        self.fields = fields
        self.templates = templates
    }

    private static let valuesKey = Key(
        required: "inject", ValueForm("mapping of templates", section: section) { InjectionSettings.read($0) },
        "Fixed fields, or other values, that are added to each request.")

    /// The values.
    package static let keys: [any SchemaKey] = [valuesKey]

    /// Reads the values.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> InjectionSettings? { fields[valuesKey] }

    /// True if a template uses a field of a credential.
    package var needsCredential: Bool { !neededFields.isEmpty }

    /// Fields of the credential in templates.
    package var neededFields: Set<String> { fields.fieldNames.union(templates.fieldNames) }

    /// True if there are values besides fields.
    package var changesRequests: Bool { !templates.isEmpty }

    /// Returns whether both set one field, parameter or member, or both the path.
    package func conflicts(with other: InjectionSettings) -> Bool {
        fields.contains { field in other.fields.contains { $0.name == field.name } }
            || templates.conflicts(with: other.templates)
    }

    /// Adds the fields and values.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("inject", fields.terms)
        templates.add(to: &terms)
    }

    /// Returns an authenticator that adds fields and values to every request.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let credential = challenge.credential else { return nil }
        let login = InjectionLogin(challenge: challenge.name, credential: credential, fields: fields, templates)
        return Authenticator(
            name: challenge.name, trigger: .ahead, isAhead: true,
            key: SessionKey(origin: site.upstream.url.origin, challenge: challenge.name, credential: credential),
            credentials: [credential], isShareable: false, changesBodies: !templates.body.isEmpty,
            makeLogin: { _ in login })
    }
}

extension InjectionSettings {
    private enum Keys {
        static let query = Key(
            "query", .parameters, "Parameters that replace those of their names in each request's query.")
        static let path = Key(
            "path", ValueForm("template of a path") { $0.pathTemplate() },
            "Path between the path of the upstream's `url` and the path of each request.")
        static let body = Key(
            "body", ValueForm("mapping of JSON pointers to templates") { $0.bodyMembers() },
            "Members that replace those of their places in each JSON body; a top-level one also in forms.")
        static let fields = Key("fields", .fieldTemplates, "Fields that are added to each request.")
        static let clean = Key(
            "clean", .choice as ValueForm<Cleaned>, "Parts of responses where these values are replaced, too.")
    }

    /// Further part of a response that is cleaned.
    private enum Cleaned: String, CaseIterable {
        case pages
    }

    /// Table of `challenges.inject`, if a value is put elsewhere than into a field.
    static let section = KeySection("challenges.inject", [Keys.query, Keys.path, Keys.body, Keys.fields, Keys.clean])

    /// Keys that make a mapping the long form. Any other mapping has the names of fields.
    private static let places: Set<String> = ["body", "fields", "path", "query"]

    /// Reads either form; nil if there are problems.
    static func read(_ value: Value) -> InjectionSettings? {
        guard let members = value.members() else { return nil }
        guard members.contains(where: { places.contains($0.name) }) else {
            if members.isEmpty { value.report("is empty: nothing would be injected") }
            let fields = value.fieldTemplates()
            return fields.isEmpty ? nil : InjectionSettings(fields)
        }
        guard let keys = value.fields(of: section) else { return nil }
        var templates = InjectionTemplates()
        templates.query = keys[Keys.query] ?? []
        templates.path = keys[Keys.path]
        templates.body = keys[Keys.body] ?? []
        templates.cleansPages = keys[Keys.clean] != nil
        let fields = keys[Keys.fields] ?? []
        check(templates, keys)
        guard !templates.isEmpty || !fields.isEmpty else {
            let isWritten = members.contains { places.contains($0.name) && !$0.value.isEmptyMapping }
            if !isWritten { value.report("is empty: nothing would be injected") }
            return nil
        }
        return InjectionSettings(fields, templates)
    }

    private static func check(_ templates: InjectionTemplates, _ keys: Fields) {
        let query = keys.written(Keys.query)
        if templates.query.contains(where: \.name.isEmpty) { query?.report("has a parameter without a name") }
        let body = keys.written(Keys.body)
        for (value, count) in [(query, templates.query.count), (body, templates.body.count)]
        where count > InjectionTemplates.limit { value?.report("has more than \(InjectionTemplates.limit) members") }
        for (index, member) in templates.body.enumerated() {
            for other in templates.body[..<index] where other.pointer.overlaps(member.pointer) {
                body?.report(
                    "has \(other.pointer.source) and \(member.pointer.source), one of which is within the other")
            }
        }
        if templates.isEmpty, let clean = keys.written(Keys.clean) {
            clean.report("has nothing to replace: it belongs to `query`, `path` or `body`")
        }
    }
}

extension Value {
    /// True if nothing is written here.
    fileprivate var isEmptyMapping: Bool { node.isNull || isMapping && members()?.isEmpty == true }

    /// Returns the template of a path in front of another.
    fileprivate func pathTemplate() -> TextTemplate? {
        guard let template = template() else { return nil }
        let literals = template.parts.map { part in if case .literal(let text) = part { text } else { "x" } }.joined()
        let isPath = literals.utf8.allSatisfy { ByteClass.path.contains($0) || $0 == UInt8(ascii: "/") }
        let segments = literals.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        let isPlain = segments.enumerated().allSatisfy { index, segment in
            segment != "." && segment != ".." && (!segment.isEmpty || index == segments.count - 1)
        }
        guard literals.hasPrefix("/"), literals != "/", isPath, isPlain else {
            report(
                "must be a path such as \"/bot{token}/\": it begins with a slash, and has no query, dot segment or %")
            return nil
        }
        return template
    }

    fileprivate func bodyMembers() -> [InjectionTemplates.Member] {
        let pointers = (members() ?? []).map { name, value -> JSONPointer? in
            let pointer = JSONPointer(name)
            if pointer == nil { value.report("must be a JSON pointer (RFC 6901), such as /api_key or /auth/key") }
            return pointer
        }
        guard !pointers.contains(nil) else { return [] }
        return parameters().compactMap { template in
            JSONPointer(template.name).map { .init(pointer: $0, value: template.value) }
        }
    }
}

extension InjectedTemplate {
    private static let framing: Set<String> = [
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    /// Returns the reason why a configuration cannot set a field of that name; nil if it can.
    package static func fault(ofName text: String) -> String? {
        guard let name = HTTPField.Name(text), !text.hasPrefix(":") else { return "is not the name of a field" }
        return framing.contains(name.canonicalName) ? "belongs to the connection and cannot be set" : nil
    }

    private enum Keys {
        static let value = Key<Value?>(required: "value", ValueForm("template") { $0 }, "Value of the field.")
        static let methods = Key(
            "on", .list(of: .method), without: "all requests", "Methods of the requests that get the field.")
    }

    /// Table of `challenges.inject.*`: a field of some requests only.
    package static let section = KeySection("challenges.inject.*", [Keys.value, Keys.methods])

    /// Returns the template and the methods of a field; its name is set by the caller.
    static func read(_ value: Value, inLogin isInLogin: Bool) -> (value: TextTemplate, methods: [String])? {
        guard let fields = value.fields(of: section) else { return nil }
        let methods = fields[Keys.methods] ?? []
        guard let template = fields[Keys.value]?.template(inLogin: isInLogin) else { return nil }
        return (template, methods.map(\.rawValue))
    }
}
