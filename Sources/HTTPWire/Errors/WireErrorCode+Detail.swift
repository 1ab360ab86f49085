// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension WireErrorCode {
    /// The rule and its section, in a sentence for people.
    public var detail: String {
        switch self {
        case .bareLineFeed:
            "A line ends with LF alone; every line of a message head ends with CRLF (RFC 9112 section 2.2)."
        case .chunkExtensionInvalid:
            "A chunk extension is not a token with an optional token or quoted string (RFC 9112 section 7.1.1)."
        case .chunkExtensionsTooLong:
            "The chunk extensions are longer than any use they have (RFC 9112 section 7.1.1)."
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
            "White space stands between a field name and its colon (RFC 9112 section 5.1)."
        case .fieldValueInvalid:
            "A field value holds a control character, such as a bare CR or NUL (RFC 9110 section 5.5)."
        case .fieldsFolded:
            "A field line is folded onto a second line (RFC 9112 section 5.2)."
        case .fieldsTooMany:
            "The message has more fields than are accepted (RFC 6585 section 5)."
        case .headTooLarge:
            "The message head is larger than is accepted (RFC 6585 section 5)."
        case .hostInvalid:
            "Host is not a host name or address with an optional port (RFC 9112 section 3.2)."
        case .hostMissing:
            "A request of HTTP/1.1 has no Host (RFC 9112 section 3.2)."
        case .hostRepeated:
            "Host is given more than once (RFC 9112 section 3.2)."
        case .interimsTooMany:
            "More interim responses came than any request can have use for (RFC 9110 section 15.2)."
        case .lengthAndEncoding:
            "Both Content-Length and Transfer-Encoding are given (RFC 9112 section 6.3)."
        case .methodTooLong:
            "The method is longer than any that is known (RFC 9112 section 3)."
        case .requestLineInvalid:
            "The request line is not method, target and version with single spaces between (RFC 9112 section 3)."
        case .requestLineTooLong:
            "The request line is longer than is accepted (RFC 9112 section 3)."
        case .statusLineInvalid:
            "The status line is not version, three digits and reason (RFC 9112 section 4)."
        case .switchInvalid:
            "A 101 switches to no protocol, or to one that was not asked for (RFC 9110 sections 7.8 and 15.2.2)."
        case .switchUnasked:
            "101 answers a request that asked for no other protocol (RFC 9110 section 15.2.2)."
        case .targetAuthorityInvalid:
            "The authority in the request target is invalid, has no host or holds user info (RFC 9110 section 4.2)."
        case .targetFormMismatch:
            "The form of the request target does not go with the method (RFC 9112 section 3.2)."
        case .targetFragment:
            "The request target has a fragment (RFC 9112 section 3.2)."
        case .targetInvalid:
            "The request target holds a character that must be percent-encoded (RFC 9112 section 3.2)."
        case .trailersTooLarge:
            "The trailer section is larger than is accepted (RFC 9112 section 7.1.2)."
        case .transferEncodingInvalid:
            "Transfer-Encoding does not end with one chunked, or is malformed (RFC 9112 section 6.3)."
        case .transferEncodingOldVersion:
            "A message of HTTP/1.0 has Transfer-Encoding (RFC 9112 section 6.1)."
        case .transferEncodingUnknown:
            "Transfer-Encoding names a coding other than chunked (RFC 9112 section 6.1)."
        case .versionInvalid:
            "The version is not HTTP, a slash and two digits with a dot between (RFC 9112 section 2.3)."
        case .versionUnsupported:
            "The major version is not 1 (RFC 9110 section 2.5)."
        }
    }
}
