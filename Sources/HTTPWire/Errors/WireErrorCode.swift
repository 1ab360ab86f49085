// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The rules of HTTP/1.1 that a peer can break, each with its word for logs and metrics.
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

    /// The status that a caller who broke the rule is told.
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
