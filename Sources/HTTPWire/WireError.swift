// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Refusal of a message: the broken rule, and the status for the caller.
///
/// Contains nothing from the peer, so it may be logged and sent.
public struct WireError: Error, Hashable, Sendable {
    /// The broken rule.
    public let code: WireErrorCode
    /// Status for the caller: the rule's own, or 502 if the upstream broke the rule.
    public let status: Int

    /// Creates a refusal of a caller's message.
    public init(_ code: WireErrorCode) {
        self.code = code
        self.status = code.status
    }

    /// Creates a refusal of an upstream's message: 502 (RFC 9110 §15.6.3).
    public init(upstream code: WireErrorCode) {
        self.code = code
        self.status = 502
    }

    /// The rule and its section, as a sentence.
    public var detail: String { code.detail }
}

extension WireError: CustomStringConvertible {
    /// Status, code and rule in one line.
    public var description: String { "\(status) \(code.rawValue): \(code.detail)" }
}

/// Rules of HTTP/1.1 that a peer can break, each with its code for logs and metrics.
public enum WireErrorCode: String, Error, CaseIterable, Sendable {
    // Lines and fields.
    case bareLineFeed = "bare-line-feed"
    case fieldColonMissing = "field-colon-missing"
    case fieldLeadingSpace = "field-leading-space"
    case fieldNameInvalid = "field-name-invalid"
    case fieldSpaceBeforeColon = "field-space-before-colon"
    case fieldValueInvalid = "field-value-invalid"
    case fieldsFolded = "fields-folded"
    case fieldsTooMany = "fields-too-many"
    case headTooLarge = "head-too-large"

    // Request line.
    case methodTooLong = "method-too-long"
    case requestLineInvalid = "request-line-invalid"
    case requestLineTooLong = "request-line-too-long"
    case targetAuthorityInvalid = "target-authority-invalid"
    case targetFormMismatch = "target-form-mismatch"
    case targetFragment = "target-fragment"
    case targetInvalid = "target-invalid"
    case versionInvalid = "version-invalid"
    case versionUnsupported = "version-unsupported"

    // Status.
    case interimsTooMany = "interims-too-many"
    case statusLineInvalid = "status-line-invalid"
    case switchInvalid = "switch-invalid"
    case switchUnasked = "switch-unasked"

    // Connection, host and framing.
    case connectionInvalid = "connection-invalid"
    case contentLengthInvalid = "content-length-invalid"
    case contentLengthRepeated = "content-length-repeated"
    case contentLengthTooLarge = "content-length-too-large"
    case expectationUnknown = "expectation-unknown"
    case hostInvalid = "host-invalid"
    case hostMissing = "host-missing"
    case hostRepeated = "host-repeated"
    case lengthAndEncoding = "length-and-encoding"
    case transferEncodingInvalid = "transfer-encoding-invalid"
    case transferEncodingOldVersion = "transfer-encoding-old-version"
    case transferEncodingUnknown = "transfer-encoding-unknown"

    // Chunked bodies.
    case chunkExtensionInvalid = "chunk-extension-invalid"
    case chunkExtensionsTooLong = "chunk-extensions-too-long"
    case chunkSizeInvalid = "chunk-size-invalid"
    case chunkSizeTooLarge = "chunk-size-too-large"
    case chunkTerminatorInvalid = "chunk-terminator-invalid"
    case trailersTooLarge = "trailers-too-large"

    /// Status sent to a caller who broke the rule.
    public var status: Int {
        switch self {
        case .requestLineTooLong: 414
        case .expectationUnknown: 417
        case .fieldsTooMany, .headTooLarge, .trailersTooLarge: 431
        case .methodTooLong, .transferEncodingUnknown: 501
        case .versionUnsupported: 505
        default: 400
        }
    }
}

extension WireErrorCode {
    /// The rule and its section, as a sentence.
    public var detail: String {
        switch self {
        case .bareLineFeed:
            "A line ends with LF alone; every line of a message head ends with CRLF (RFC 9112 section 2.2)."
        case .chunkExtensionInvalid:
            "A chunk extension is not a token with an optional token or quoted string (RFC 9112 section 7.1.1)."
        case .chunkExtensionsTooLong:
            "The chunk extensions are longer than any legitimate use needs (RFC 9112 section 7.1.1)."
        case .chunkSizeInvalid:
            "A chunk does not start with its size in hexadecimal digits (RFC 9112 section 7.1)."
        case .chunkSizeTooLarge:
            "A chunk size is larger than can be counted (RFC 9112 section 7.1)."
        case .chunkTerminatorInvalid:
            "A chunk, its size or its extensions do not end with CRLF (RFC 9112 section 7.1)."
        case .connectionInvalid:
            "Connection is not a list of at most 64 tokens (RFC 9110 section 7.6.1)."
        case .contentLengthInvalid:
            "Content-Length is not one decimal number (RFC 9110 section 8.6)."
        case .contentLengthRepeated:
            "Content-Length is given more than once (RFC 9110 section 8.6, RFC 9112 section 6.3)."
        case .contentLengthTooLarge:
            "Content-Length is larger than can be counted (RFC 9110 section 8.6)."
        case .expectationUnknown:
            "Expect names something other than 100-continue (RFC 9110 section 10.1.1)."
        case .fieldColonMissing:
            "A field line has no colon (RFC 9112 section 5)."
        case .fieldLeadingSpace:
            "The first field line starts with white space (RFC 9112 section 2.2)."
        case .fieldNameInvalid:
            "A field name is empty or not a token (RFC 9110 section 5.1)."
        case .fieldSpaceBeforeColon:
            "White space precedes the colon of a field name (RFC 9112 section 5.1)."
        case .fieldValueInvalid:
            "A field value contains a control character, such as a bare CR or NUL (RFC 9110 section 5.5)."
        case .fieldsFolded:
            "A field line is folded onto a second line (RFC 9112 section 5.2)."
        case .fieldsTooMany:
            "The message has more fields than are accepted (RFC 6585 section 5)."
        case .headTooLarge:
            "The message head is larger than is accepted (RFC 6585 section 5)."
        case .hostInvalid:
            "Host is not a host name or address with an optional port (RFC 9112 section 3.2)."
        case .hostMissing:
            "An HTTP/1.1 request has no Host (RFC 9112 section 3.2)."
        case .hostRepeated:
            "Host is given more than once (RFC 9112 section 3.2)."
        case .interimsTooMany:
            "The upstream sent too many interim responses (RFC 9110 section 15.2)."
        case .lengthAndEncoding:
            "Both Content-Length and Transfer-Encoding are given (RFC 9112 section 6.3)."
        case .methodTooLong:
            "The method is longer than any known method (RFC 9112 section 3)."
        case .requestLineInvalid:
            "The request line is not a method, a target and a version separated by single spaces (RFC 9112 section 3)."
        case .requestLineTooLong:
            "The request line is longer than is accepted (RFC 9112 section 3)."
        case .statusLineInvalid:
            "The status line is not version, three digits and reason (RFC 9112 section 4)."
        case .switchInvalid:
            "A 101 response names no protocol, or one that was not requested (RFC 9110 sections 7.8 and 15.2.2)."
        case .switchUnasked:
            "A 101 response answers a request without an upgrade (RFC 9110 section 15.2.2)."
        case .targetAuthorityInvalid:
            "The authority in the request target is invalid, has no host or contains user info (RFC 9110 section 4.2)."
        case .targetFormMismatch:
            "The form of the request target does not fit the method (RFC 9112 section 3.2)."
        case .targetFragment:
            "The request target has a fragment (RFC 9112 section 3.2)."
        case .targetInvalid:
            "The request target contains a character that must be percent-encoded (RFC 9112 section 3.2)."
        case .trailersTooLarge:
            "The trailer section is larger than is accepted (RFC 9112 section 7.1.2)."
        case .transferEncodingInvalid:
            "Transfer-Encoding does not end with a single chunked, or is malformed (RFC 9112 section 6.3)."
        case .transferEncodingOldVersion:
            "An HTTP/1.0 message has Transfer-Encoding (RFC 9112 section 6.1)."
        case .transferEncodingUnknown:
            "Transfer-Encoding names a coding other than chunked (RFC 9112 section 6.1)."
        case .versionInvalid:
            "The version is not HTTP/ and two digits separated by a dot (RFC 9112 section 2.3)."
        case .versionUnsupported:
            "The major version is not 1 (RFC 9110 section 2.5)."
        }
    }
}
