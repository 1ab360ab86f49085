// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// What a token endpoint answered (RFC 6749 §5), read strictly.
struct TokenAnswer {
    /// A token and its life.
    struct Token {
        let value: Secret
        /// How long it lives, in seconds, where the server says so.
        let seconds: Int64?

        /// When it ends, in milliseconds since 1970. Its life counts from when it was asked for (`sentAt`), so that the
        /// session never outlives it.
        func expiresAt(sentAt: Int64) -> Int64? {
            seconds.flatMap { seconds in
                let end = sentAt.addingReportingOverflow(seconds * 1000)
                return end.overflow ? nil : end.partialValue
            }
        }
    }

    /// Why a token cannot be used.
    struct Unusable: Error, Equatable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private let body: JSONValue?

    init(_ body: [UInt8]) {
        self.body = JSONValue(parsing: body)
    }

    /// The refresh token, where there is one that can be kept.
    var refreshToken: Secret? { carriable("refresh_token") }

    /// The server's word for what is wrong (§5.2), where it is one.
    var error: String? {
        guard let error = body?["error"]?.stringValue, (1...64).contains(error.utf8.count) else { return nil }
        let isWord = error.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            default:
                false
            }
        }
        return isWord ? error : nil
    }

    /// The access token (§5.1), looked for under `names`. A life that is missing is `defaultSeconds`.
    func token(named names: [String] = ["access_token"], defaultSeconds: Int64? = nil) throws(Unusable) -> Token {
        guard let body else { throw Unusable("is no JSON") }
        guard let value = names.lazy.compactMap(carriable).first else {
            throw Unusable("holds no `\(names[0])` that a field can carry")
        }
        if let type = body["token_type"], type != .null {
            guard let type = type.stringValue, type.lowercased() == "bearer" else {
                throw Unusable("holds a token of another type than Bearer")
            }
        }
        guard let life = body["expires_in"], life != .null else { return Token(value: value, seconds: defaultSeconds) }
        guard let seconds = Self.seconds(life) else { throw Unusable("holds an `expires_in` that is no number") }
        guard seconds > 0 else { throw Unusable("holds a token that has ended already") }
        // Beyond ten years it is a mistake in units; it is cut, so that nothing can overflow.
        return Token(value: value, seconds: min(seconds, 10 * 366 * 86400))
    }

    private func carriable(_ name: String) -> Secret? {
        guard let text = body?[name]?.stringValue, TokenPlacement.canCarry(text.utf8) else { return nil }
        return Secret(text)
    }

    /// Whole seconds of a number or of a text that is one.
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
}
