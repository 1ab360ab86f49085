// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Reader of a token endpoint's answer: a token (RFC 6749 §5.1) or a complaint (§5.2).
///
/// JSON is read whatever the media type. Another body is read as a form if its type is that of a form, or plain text:
/// so do Go's and GitHub's clients.
struct TokenAnswer {
    /// A token and its lifetime.
    struct Token: Equatable {
        let value: Secret
        /// The lifetime in seconds, if the server states one.
        let seconds: Int64?

        /// Returns the expiry in milliseconds since 1970. The lifetime counts from `sentAt`, when the token was
        /// requested, so the session never outlives the token.
        func expiresAt(sentAt: Int64) -> Int64? {
            seconds.flatMap { seconds in
                let end = sentAt.addingReportingOverflow(seconds * 1000)
                return end.overflow ? nil : end.partialValue
            }
        }
    }

    /// Reason why a token cannot be used.
    struct Unusable: Error, Equatable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private let body: JSONValue?

    init(_ response: SideResponse) { self.init(response.body, type: response.fields[.contentType]) }

    /// Reads a body of the media type `type`.
    init(_ body: [UInt8], type: String? = nil) {
        self.body = JSONValue(parsing: body) ?? Self.form(body, type: type)
    }

    /// The refresh token, if the answer has one that can be stored.
    var refreshToken: Secret? { carriable("refresh_token") }

    /// The server's complaint; `nil` if the answer holds none in any known form.
    var complaint: TokenComplaint? { body.flatMap { TokenComplaint(in: $0) } }

    /// The complaint of an answer that states an `error`, which counts even beside a token.
    var statedComplaint: TokenComplaint? {
        body?["error"].map(TokenComplaint.isStated) == true ? complaint ?? TokenComplaint() : nil
    }

    /// The server's error code, if it is valid.
    var error: String? { complaint?.word }

    /// Returns the access token (§5.1), the first of `names` that is present. `defaultSeconds` replaces a missing
    /// lifetime.
    func token(named names: [String] = ["access_token"], defaultSeconds: Int64? = nil) throws(Unusable) -> Token {
        guard let body else { throw Unusable("is not JSON") }
        guard let value = names.lazy.compactMap(carriable).first else {
            throw Unusable("holds no `\(names[0])` that a field can carry")
        }
        if let type = body["token_type"], type != .null {
            guard let type = type.stringValue, type.lowercased() == "bearer" else {
                throw Unusable("holds a token of another type than Bearer")
            }
        }
        guard let life = body["expires_in"], life != .null else { return Token(value: value, seconds: defaultSeconds) }
        guard let seconds = Self.seconds(life) else { throw Unusable("holds an `expires_in` that is not a number") }
        guard seconds > 0 else { throw Unusable("holds a token that has expired already") }
        // More than ten years is a mistake in units. The limit avoids overflow.
        return Token(value: value, seconds: min(seconds, 10 * 366 * 86400))
    }

    private func carriable(_ name: String) -> Secret? {
        guard let text = body?[name]?.stringValue, TokenPlacement.canCarry(text.utf8) else { return nil }
        return Secret(text)
    }

    /// Returns whole seconds of a number, or of a text with a number.
    private static func seconds(_ value: JSONValue) -> Int64? {
        if let whole = value.integerValue { return whole }
        switch value {
        case .double(let number): return whole(number)
        case .string(let text): return Double(text).flatMap(whole)
        default: return nil
        }
    }

    private static func whole(_ number: Double) -> Int64? {
        guard number.isFinite else { return nil }
        return Int64(min(max(number, -1), 1e12))
    }

    /// The members of an answer that is a form.
    private static let formNames = [
        "access_token", "token", "token_type", "expires_in", "refresh_token", "error", "error_description",
    ]
    /// The longest form, in bytes; the limit of JSON is the same.
    private static let longestForm = 64 * 1024

    /// Returns a form as an object; `nil` for other types, and without any known member.
    private static func form(_ body: [UInt8], type: String?) -> JSONValue? {
        let type = type?.prefix { $0 != ";" && $0 != " " }.lowercased()
        guard let type, [FormEncoding.mediaType, "text/plain"].contains(type), body.count <= longestForm,
            let text = String(validating: body, as: UTF8.self)
        else { return nil }
        var members: [String: JSONValue] = [:]
        for name in formNames { members[name] = FormEncoding.value(of: name, in: text).map { .string($0) } }
        return members.isEmpty ? nil : .object(members)
    }
}
