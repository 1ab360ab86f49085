// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why a connection of HAProxy's cannot go on; the raw value is the status code of a DISCONNECT frame (SPOE.txt section 3.5).
enum SPOPFault: UInt32, Error, Sendable {
    /// None: the connection is not needed any more.
    case none = 0
    case timeout = 2
    case frameTooBig = 3
    case frameInvalid = 4
    case versionMissing = 5
    case frameSizeMissing = 6
    case capabilitiesMissing = 7
    case versionUnsupported = 8
    case frameSizeUnsupported = 9
    case fragmentationUnsupported = 10

    /// What HAProxy's log is to say.
    var message: StaticString {
        switch self {
        case .none: "countersign closes this connection"
        case .timeout: "a frame did not come in time"
        case .frameTooBig: "frame is too big"
        case .frameInvalid: "invalid frame received"
        case .versionMissing: "version value not found"
        case .frameSizeMissing: "max-frame-size value not found"
        case .capabilitiesMissing: "capabilities value not found"
        case .versionUnsupported: "unsupported version: countersign speaks 2.0"
        case .frameSizeUnsupported: "max-frame-size too small"
        case .fragmentationUnsupported: "payload fragmentation is not supported"
        }
    }
}
