// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reader of one field of challenges:
///
///     #challenge
///     challenge  = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///     auth-param = token BWS "=" BWS ( token / quoted-string )
///
/// Commas separate both challenges and parameters (RFC 9110 §11.6.1). A token before `=` is a parameter of the current
/// challenge; any other token after a comma begins a challenge. Servers also omit commas, write semicolons or single
/// quotes, and quote nothing at all: such text is read as it is meant. What remains is reported and skipped.
struct ChallengeReader {
    /// Limit of parameters. Every scheme needs less than a third of them, each is compared with all before it, and a
    /// head can hold tens of thousands.
    static let mostParameters = 64
    /// Limit of challenges in all fields.
    static let mostChallenges = 128
    /// Limit of reported parts in all fields.
    static let mostUnread = 16

    private var cursor: ChallengeCursor
    private let field: Int
    private let fields: Int
    private var scheme: String?
    private var token68: String?
    private var parameters: [AuthenticationChallenge.Parameter] = []
    /// False after text from which it is unknown if the following is inside or outside of quotes.
    private var isSound = true

    /// Creates a reader of `value`, which is number `field` of `fields`.
    init(_ value: String, field: Int, of fields: Int) {
        cursor = ChallengeCursor(value)
        self.field = field
        self.fields = fields
    }

    /// Appends the challenges and the unread parts to `list`.
    mutating func read(into list: inout ChallengeList) {
        var isFirst = true
        while let separator = cursor.skipSeparators() {
            readElement(afterComma: isFirst || separator == .comma, &list)
            isFirst = false
        }
        close(&list)
        // A challenge may be hidden in what looks like a quoted string.
        if !isSound { list.damaged.formUnion(cursor.beginnings(of: Self.strongSchemes)) }
    }

    private mutating func readElement(afterComma: Bool, _ list: inout ChallengeList) {
        let start = cursor.position
        let name = cursor.takeToken()
        if !name.isEmpty, cursor.skipEquals() { return readParameter(name, from: start, &list) }
        guard !name.isEmpty, cursor.isAtSeparator else {
            cursor.skipWord(&isSound)
            report(.noElement, from: start, &list)
            // The parameters of what may have been a scheme belong to no other.
            if afterComma, cursor.isParameterAfterBlanks { close(&list) }
            return
        }
        if Self.names.contains(name.lowercased()) { return report(.noValue, from: start, &list) }
        let isBasic = name.lowercased() == "basic"
        guard afterComma || (!isBasic && Self.strongSchemes.contains(name.lowercased()) && cursor.isBodyOfScheme) else {
            return report(.words, from: start, &list)
        }
        // It may be text that a realm has quoted.
        guard isSound else { return report(.unsoundQuoting, from: start, &list) }
        close(&list)
        begin(name, from: start, &list)
    }

    private mutating func begin(_ name: String, from start: Int, _ list: inout ChallengeList) {
        guard list.challenges.count < Self.mostChallenges else { return report(.tooMany, from: start, &list) }
        scheme = name
        cursor.skipBlanks()
        let place = cursor.position
        guard let (text, padding) = cursor.takeToken68() else { return }
        guard Self.names.contains(text.lowercased()), padding.count < 2 else {
            token68 = text + padding
            return
        }
        // `Basic realm=` looks like a token68.
        if padding.isEmpty { report(.noValue, from: place, &list) } else { append(text, "", from: place, &list) }
    }

    /// Reads a parameter's value, after its `=`.
    private mutating func readParameter(_ name: String, from start: Int, _ list: inout ChallengeList) {
        let value = cursor.takeValue(&isSound, isSchemeAfterWord: Self.strongSchemes.contains)
        if value.isOpen {
            isSound = false
            report(.noEnd, from: start, &list)
        }
        append(name, value.text, from: start, &list)
    }

    private mutating func append(_ name: String, _ value: String, from start: Int, _ list: inout ChallengeList) {
        let name = name.lowercased()
        if scheme == nil { return report(.noScheme, from: start, &list) }
        if parameters.contains(where: { $0.name == name }) { return report(.anotherValue, from: start, &list) }
        guard parameters.count < Self.mostParameters else { return report(.tooMany, from: start, &list) }
        parameters.append(.init(name: name, value: value))
    }

    private mutating func close(_ list: inout ChallengeList) {
        if let scheme { list.challenges.append(.init(scheme: scheme, token68: token68, parameters: parameters)) }
        scheme = nil
        token68 = nil
        parameters = []
    }

    private func report(_ reason: UnreadChallengeText.Reason, from start: Int, _ list: inout ChallengeList) {
        if let scheme { list.damaged.insert(scheme.lowercased()) }
        guard list.unread.count < Self.mostUnread else { return }
        list.unread.append(
            UnreadChallengeText(
                field: field, fields: fields, offset: start, text: cursor.name(from: start), reason: reason))
    }

    /// Names of parameters, which without a value are no schemes.
    private static let names: Set<String> = [
        "algorithm", "authorization_uri", "charset", "domain", "error", "error_description", "error_uri", "nonce",
        "opaque", "qop", "realm", "resource_id", "resource_metadata", "scope", "service", "stale", "userhash",
    ]

    /// Schemes that begin a challenge without a comma, too. Another reading could only take a weaker one for the only.
    private static let strongSchemes: Set<String> = ["bearer", "digest", "negotiate", "ntlm"]
}
