// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
package import Secrets

/// Question to a login helper: the address, and the credential's fields.
///
/// The seed of one-time passwords stays here: the helper gets the current password as `totp`.
struct HelperQuestion {
    /// Version of the protocol.
    static let version: Int64 = 1

    let challenge: String
    let origin: Origin
    /// The address that shows the login page.
    let address: WebURL
    let timeout: Duration

    /// Returns one line of JSON. Throws if a field is not text, or if the one-time password was used already.
    func text(_ credential: Credential) async throws(TemplateError) -> LoginHelperQuestion {
        var fields: [String: SecretJSON] = [:]
        var secrets: [Secret] = []
        for (name, value) in credential.fields {
            secrets.append(value)
            if name == "totp-seed" { continue }
            guard let text = String(validating: value.revealBytes(), as: UTF8.self) else {
                throw .fieldNotText(field: name, credential: credential.name)
            }
            fields[name] = SecretJSON(.string(text))
        }
        if credential["totp-seed"] != nil {
            let password = try await TextTemplate("{totp}").render(credential)
            secrets.append(password)
            fields["totp"] = SecretJSON(.string(password.revealText()))
        }
        let question = SecretJSON(object: [
            "version": SecretJSON(.integer(Self.version)),
            "challenge": SecretJSON(.string(challenge)),
            "origin": SecretJSON(.string("\(origin)")),
            "url": SecretJSON(.string("\(address)")),
            "timeout": SecretJSON(.integer(max(1, timeout.components.seconds))),
            "fields": SecretJSON(object: fields),
        ])
        return LoginHelperQuestion(text: .joining([question.text, Secret("\n")]), secrets: secrets)
    }
}

/// Answer of a login helper: a session, or the reason why it has none.
///
/// `{"cookies": [{"name": …, "value": …}], "fields": {…}, "expires_in": 300}`, or `{"error": …, "message": …}`. Unknown
/// members are ignored, so that a browser's own record of a cookie can be passed on.
package enum HelperAnswer: Sendable, Equatable {
    /// The login worked.
    case session(HelperSession)
    /// The login failed.
    case failure(cause: Cause, message: String)

    /// Cause of a failed login.
    package enum Cause: Sendable, Equatable {
        /// A cause that the configuration knows as well.
        case known(FailureMatcher.Cause)
        /// Another problem of the helper, which says nothing about the credential.
        case other(String)
    }

    /// Reason why an answer cannot be used, in words that follow "the answer". It has no part of the answer.
    package struct Unusable: Error, Equatable {
        /// The reason.
        package let reason: String
    }

    /// Maximum number of bytes.
    package static let sizeLimit = 65_536

    /// Parses an answer.
    package init(parsing bytes: [UInt8]) throws(Unusable) {
        guard !bytes.isEmpty else { throw Unusable(reason: "is empty") }
        guard bytes.count <= Self.sizeLimit else { throw Unusable(reason: "is longer than 64 KiB") }
        guard let members = JSONValue(parsing: bytes)?.objectValue else {
            throw Unusable(reason: "is not one JSON object")
        }
        guard let error = Self.present(members["error"]) else {
            self = .session(try HelperSession(members))
            return
        }
        guard case .string(let word) = error, !word.isEmpty else {
            throw Unusable(reason: "has an \"error\" that is not a word")
        }
        let cause = FailureMatcher.Cause(rawValue: word).map(Cause.known) ?? .other(ServerText.name(word))
        self = .failure(cause: cause, message: members["message"]?.stringValue ?? "")
    }

    /// Returns `value` unless it is `null`.
    static func present(_ value: JSONValue?) -> JSONValue? { value == .null ? nil : value }
}

/// Session in the answer of a login helper.
package struct HelperSession: Sendable, Equatable {
    /// Cookies in order.
    package var cookies: [HelperCookie] = []
    /// Values for the templates of `inject`.
    package var fields: [String: Secret] = [:]
    /// Lifetime in seconds; nil if the helper states none.
    package var lifetime: Int64?

    /// Maximum number of cookies and of fields.
    private static let countLimit = 256

    init(_ members: [String: JSONValue]) throws(HelperAnswer.Unusable) {
        switch HelperAnswer.present(members["cookies"]) {
        case nil: break
        case .array(let elements) where elements.count <= Self.countLimit:
            for (index, element) in elements.enumerated() {
                cookies.append(try HelperCookie(element, "cookies[\(index)]"))
            }
        default: throw HelperAnswer.Unusable(reason: "has \"cookies\" that are not a list of at most 256")
        }
        switch HelperAnswer.present(members["fields"]) {
        case nil: break
        case .object(let values) where values.count <= Self.countLimit:
            for (name, value) in values {
                guard case .string(let text) = value, Self.canCarry(text.utf8) else {
                    throw HelperAnswer.Unusable(
                        reason: "has a value in \"fields\" that a field cannot carry (use printable ASCII text)")
                }
                fields[name] = Secret(text)
            }
        default: throw HelperAnswer.Unusable(reason: "has \"fields\" that are not an object of at most 256 texts")
        }
        guard let written = HelperAnswer.present(members["expires_in"]) else { return }
        guard let seconds = written.integerValue, seconds > 0 else {
            throw HelperAnswer.Unusable(reason: "has an \"expires_in\" that is not a number of seconds from now")
        }
        // More than ten years is a mistake in units. The limit avoids overflow.
        lifetime = min(seconds, 10 * 366 * 86_400)
    }

    /// Returns whether a field can carry `text` (RFC 9110 §5.5).
    private static func canCarry(_ text: String.UTF8View) -> Bool {
        (1...TokenPlacement.longest).contains(text.count) && text.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
            && text.first != 0x20 && text.last != 0x20
    }
}

/// Cookie in the answer of a login helper, in the form of browsers' own records.
///
/// A domain with a leading dot includes the hosts below; without one, it must be the upstream's host. A missing or
/// negative expiry is the end of the session.
package struct HelperCookie: Sendable, Equatable {
    /// Name, which is safe to report.
    package let name: String
    private let value: Secret
    private let domain: String?
    private let path: String
    private let isSecure: Bool
    /// Expiry in seconds since 1970.
    private let expires: Int64?

    init(_ json: JSONValue, _ place: String) throws(HelperAnswer.Unusable) {
        func unusable(_ reason: String) -> HelperAnswer.Unusable {
            HelperAnswer.Unusable(reason: "has \(reason) in \(place)")
        }
        guard let members = json.objectValue else { throw HelperAnswer.Unusable(reason: "has no object at \(place)") }
        // A cookie's name is a token (RFC 6265 §4.1.1).
        guard case .string(let name)? = members["name"], HTTPField.Name(name) != nil else {
            throw unusable("no valid \"name\"")
        }
        guard case .string(let value)? = members["value"], Self.canCarry(value) else {
            throw unusable("no valid \"value\"")
        }
        let (domain, path) = (HelperAnswer.present(members["domain"]), HelperAnswer.present(members["path"]))
        if let domain {
            guard case .string(let text) = domain, !text.isEmpty, Self.canCarry(text) else {
                throw unusable("no valid \"domain\"")
            }
        }
        if let path {
            guard case .string(let text) = path, text.hasPrefix("/"), Self.canCarry(text) else {
                throw unusable("no valid \"path\"")
            }
        }
        switch HelperAnswer.present(members["secure"]) {
        case nil: isSecure = false
        case .bool(let flag): isSecure = flag
        default: throw unusable("a \"secure\" that is neither true nor false")
        }
        switch HelperAnswer.present(members["expires"]) {
        case nil: expires = nil
        case .integer(let seconds): expires = seconds < 0 ? nil : seconds
        case .double(let seconds): expires = seconds < 0 ? nil : Int64(exactly: seconds.rounded(.down)) ?? .max
        default: throw unusable("an \"expires\" that is not a number of seconds since 1970")
        }
        self.name = name
        self.value = Secret(value)
        self.domain = domain?.stringValue
        self.path = path?.stringValue ?? "/"
    }

    /// Returns the `Set-Cookie` value with which `host` would set the cookie (RFC 6265 §4.1); nil if the cookie belongs
    /// to another host.
    func setCookie(from host: String, now: Int64) -> String? {
        var line = "\(name)=\(value.revealText()); Path=\(path)"
        if let domain {
            if domain.hasPrefix(".") {
                line += "; Domain=\(domain)"
            } else if domain.lowercased() != host {
                return nil
            }
        }
        if isSecure { line += "; Secure" }
        if let expires {
            let seconds = expires.subtractingReportingOverflow(now / 1000)
            line += "; Max-Age=\(seconds.overflow ? .max : max(seconds.partialValue, 0))"
        }
        return line
    }

    /// Returns whether `text` is valid in a part of `Set-Cookie`: no control character and no semicolon.
    private static func canCarry(_ text: String) -> Bool {
        text.utf8.count <= CookieJar.sizeLimit
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ";") }
    }
}
